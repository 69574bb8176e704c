"""Accelerators made ready: side by side, beside a search, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from host_cuda import HostDriver

from gmeql.fitters.cuda.driver import AcceleratorError
from gmeql.search.accelerator import cards


class Prepared(HostDriver):
    """Notes what is compiled; `failure` stands for a compiler that refuses."""

    def __init__(self, failure: str = "") -> None:
        self.names: list[str] = []
        self.failure = failure

    def prepare(self, source: str, name: str) -> None:
        if self.failure:
            raise AcceleratorError(self.failure)
        self.names.append(name)


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Prepared:
    driver = Prepared()
    monkeypatch.setattr(cards.tempfile, "gettempdir", lambda: str(tmp_path))  # other tests run beside this one
    monkeypatch.setattr(cards, "drivers", lambda: (driver,))
    monkeypatch.setattr(cards, "why_not", lambda: "")
    return driver


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What users are told of failures."""
    words: list[str] = []
    monkeypatch.setattr(cards, "say_fallback", lambda error: words.append(str(error)))
    return words


def test_every_kernel_is_compiled_before_it_is_needed(prepared: Prepared) -> None:
    (card,) = cards.required_cards()
    assert card.driver is prepared and set(prepared.names) == {"draw", "fit"}


def test_a_search_does_not_wait_for_its_accelerator(prepared: Prepared) -> None:
    preparation = cards.Preparation()
    preparation.thread.join()
    assert [card.driver for card in preparation.ready()] == [prepared]


def test_an_accelerator_that_fails_while_it_is_made_ready_is_left_alone(prepared: Prepared, said: list[str]) -> None:
    prepared.failure = "no memory"
    preparation = cards.Preparation()
    preparation.thread.join()
    assert preparation.ready() == [] and said == ["no memory"]


def test_one_that_was_asked_for_and_has_no_room_is_gone_on_without(prepared: Prepared, said: list[str]) -> None:
    prepared.failure = "out of memory"
    assert cards.required_cards() == [] and said == ["out of memory"]


def test_searches_that_only_would_like_an_accelerator_come_after_each_other(prepared: Prepared) -> None:
    first, second = cards.Preparation(), cards.Preparation()
    for one in (first, second):
        one.thread.join()
    assert first.ready() and not second.ready()
    first.give_back()
    told = [cards.Claim(shared=True) for _ in range(2)]
    third = cards.Claim(shared=False)
    assert [claim.is_held for claim in told] == [True, True] and not third.is_held
    for claim in told:
        claim.let_go()
    assert cards.Claim(shared=False).is_held


def test_none_is_no_error_unless_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "why_not", lambda: "no CUDA device was found")
    preparation = cards.Preparation()
    preparation.thread.join()
    assert preparation.ready() == []
    with pytest.raises(ValueError, match="no CUDA device was found"):
        cards.required_cards()
