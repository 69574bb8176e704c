"""Outlooks that are worked out only when somebody asks: of a front that ends with an exact formula hardly anybody does.

A `Deferred` stands for a value until then. A dataclass with an `OutlookField` takes either, and gives the value when it is read.
Code that only hands an outlook on uses `carried`, which does not work it out. Copies and files hold the value itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from gmeql.search.judging.outlook import Outlook

T = TypeVar("T")
S = TypeVar("S")


class Deferred(Generic[T]):
    """A value that is made once, when first asked for.

    >>> value = Deferred(lambda: 2).then(lambda two: two + 1)
    >>> value.get()
    3
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make: Callable[[], T] | None = make
        self._made: list[T] = []

    def get(self) -> T:
        """The value."""
        if self._make is not None:
            self._made, self._make = [self._make()], None
        return self._made[0]

    def then(self, change: Callable[[T], S]) -> Deferred[S]:
        """What a function makes of the value, as late."""
        return Deferred(lambda: change(self.get()))

    def __reduce__(self) -> tuple[Any, ...]:
        return _itself, (self.get(),)


def _itself(value: T) -> T:
    return value


LateOutlook = Outlook | Deferred[Outlook] | None
"""An outlook, known, to be worked out, or none."""


class OutlookField:
    """The field `outlook` of a dataclass: None where nothing else is given."""

    @overload
    def __get__(self, member: None, owner: type) -> None: ...
    @overload
    def __get__(self, member: object, owner: type) -> Outlook | None: ...
    def __get__(self, member: object | None, owner: type) -> Outlook | None:
        if member is None:
            return None
        found: LateOutlook = vars(member)["outlook"]
        if isinstance(found, Deferred):
            found = vars(member)["outlook"] = found.get()
        return found

    def __set__(self, member: object, outlook: LateOutlook) -> None:
        vars(member)["outlook"] = outlook


OUTLOOK = OutlookField()
"""The one of all dataclasses: it holds nothing."""


def carried(member: object) -> LateOutlook:
    """The outlook of a member as it was given, worked out or not; None where it has no such field."""
    held = getattr(member, "__dict__", {})
    outlook: LateOutlook = held["outlook"] if "outlook" in held else getattr(member, "outlook", None)
    return outlook
