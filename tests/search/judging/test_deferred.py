"""Outlooks that wait until somebody asks are the same then, and in every copy."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, replace
from types import SimpleNamespace

import pytest

from gmeql.formula.bounds import Bounds
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant
from gmeql.search.events import Member
from gmeql.search.judging.deferred import Deferred, carried
from gmeql.search.judging.outlook import Outlook

OUTLOOK = Outlook(0.5, 0.1, False, 2.0, Bounds(-1.0, 4.0, True))
ONE = Expression(Constant(1.0), ())


def member(outlook: Outlook | Deferred[Outlook] | None) -> Member:
    return Member(ONE, 0.5, 1, outlook)


def test_it_is_worked_out_once_and_only_when_asked_for() -> None:
    asked: list[int] = []

    def make() -> Outlook:
        asked.append(1)
        return OUTLOOK

    late = Deferred(make)
    one, scaled = member(late), member(late.then(lambda known: known.scaled(1)))
    kept = replace(one, loss=0.25, outlook=carried(one))
    assert not asked and carried(kept) is late
    assert one.outlook is kept.outlook is one.outlook is OUTLOOK and asked == [1]
    assert scaled.outlook == OUTLOOK.scaled(1) and asked == [1]
    assert carried(one) is OUTLOOK and one == member(OUTLOOK) and "Deferred" not in repr(one)


def pickled(one: Member) -> Member:
    found: Member = pickle.loads(pickle.dumps(one))  # noqa: S301 - our own bytes
    return found


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, pickled, replace])
def test_copies_hold_the_same(copied: object) -> None:
    found = copied(member(Deferred(lambda: OUTLOOK)))  # type: ignore[operator]
    assert found == member(OUTLOOK)
    assert b"Deferred" not in pickle.dumps(member(Deferred(lambda: OUTLOOK)))


def test_a_member_without_one_has_none_and_stays_as_it_is() -> None:
    plain = Member(ONE, 0.5, 1)
    assert plain.outlook is None and carried(plain) is None and Member.outlook is None
    with pytest.raises(FrozenInstanceError):
        plain.outlook = OUTLOOK  # type: ignore[misc]
    assert carried(SimpleNamespace(outlook=OUTLOOK)) is OUTLOOK and carried(1) is None
