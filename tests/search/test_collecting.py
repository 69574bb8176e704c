"""What the interpreter's look for garbage goes through."""

from __future__ import annotations

import gc
import weakref

import pytest

from gmeql.search.collecting import among_new_objects


class Ring:
    """Refers to itself, so that only a look for garbage finds it."""

    def __init__(self) -> None:
        self.me = self


def test_old_objects_are_passed_over_and_new_garbage_is_found() -> None:
    old = Ring()
    seen_old = weakref.ref(old)
    with among_new_objects():
        assert gc.get_freeze_count() > 0
        del old
        seen_new = weakref.ref(Ring())
        gc.collect()
        assert seen_old() is not None and seen_new() is None
    gc.collect()
    assert seen_old() is None


def test_whatever_ends_a_search_all_is_gone_through_again() -> None:
    with pytest.raises(KeyError), among_new_objects():
        raise KeyError
    assert gc.get_freeze_count() == 0
