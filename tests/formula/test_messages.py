"""Whatever a file holds, a message about it stays short and printable."""

from __future__ import annotations

from gmeql.formula.messages import listing, short, shortened


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError


def test_values_are_cut() -> None:
    assert short("mass") == "'mass'" and short(3.5) == "3.5" and short(None) == "None"
    assert len(short("a" * 10**6)) == 60
    assert short("\x1b[31m\u202e").isascii() and short("\n").isprintable()
    assert short(10**5000) == "a very large whole number"
    assert short(Hostile()) == "Hostile" and short([1, 2]) == "list"


def test_lists_are_cut() -> None:
    assert listing(["a", "b"]) == "a, b"
    assert listing([f"x{i}" for i in range(10)]) == "x0, x1, x2, x3, x4, x5, x6, x7, ... (10 in all)"
    assert listing(["\n", "a" * 100]) == "'\\n', " + "a" * 40


def test_formulas_are_cut_between_their_parts() -> None:
    assert shortened("a + b", 5) == "a + b" and shortened("1.2345*a + 0.54062", 16) == "1.2345*a + …"
    assert shortened("x" * 30, 10) == "x" * 9 + "…" and shortened("a " + "x" * 30, 10) == "a " + "x" * 7 + "…"
    assert all(len(shortened("3.1*speed + 2.25*grip - 0.4", limit)) <= limit for limit in range(4, 30))
    assert shortened("12.5*grip + `the speed`", 20) == "12.5*grip + …"
