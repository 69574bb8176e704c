"""One member of a front, and its form in files."""

from __future__ import annotations

import pytest

from gmeql.formula.bounds import Bounds
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import MAX_OWN, FrontMember
from gmeql.search.judging.deferred import Deferred, carried
from gmeql.search.judging.outlook import Outlook

X1 = Variable(0)
LINE = Expression(Call("mul", (Constant(2.5), X1)), ("x1",))


class TestStorage:
    @pytest.mark.parametrize("outlook", [None, Outlook(0.5, 0.1, False, 2.0, Bounds(-1.0, 4.0, True))])
    @pytest.mark.parametrize("n_own", [0, 4])
    def test_dict_round_trip(self, outlook: Outlook | None, n_own: int) -> None:
        member = FrontMember(LINE, 0.25, LINE.complexity, 0.0, 3, outlook, n_own)
        assert FrontMember.from_dict(member.to_dict(), index=3, where="here") == member

    @pytest.mark.parametrize(
        ("change", "named"),
        [
            ({"loss": -1.0}, "loss"),
            ({"complexity": LINE.complexity + 1}, "complexity"),
            ({"complexity": True}, "complexity"),
            ({"n_own": MAX_OWN + 1}, "n_own"),
            ({"n_own": 1.0}, "n_own"),
            ({"outlook": {}}, "outlook"),
            ({"more": 1}, "fields"),
        ],
    )
    def test_what_is_no_member_is_refused_by_name(self, change: dict[str, object], named: str) -> None:
        data = FrontMember(LINE, 0.25, LINE.complexity, 0.0, 0).to_dict() | change
        with pytest.raises(ValueError, match=rf"here.*{named}"):
            FrontMember.from_dict(data, index=0, where="here")


def test_a_member_is_its_formula() -> None:
    member = FrontMember(LINE, 0.25, LINE.complexity, 0.0, 0)
    assert member([[2.0], [4.0]]).tolist() == [5.0, 10.0]
    assert str(member) == str(LINE) and member.export("latex") == member.latex() == LINE.latex()


def test_an_outlook_that_nobody_asked_for_is_handed_on_and_marks_nothing() -> None:
    def never() -> Outlook:
        raise AssertionError("nobody asked")

    member = FrontMember(LINE, 0.25, LINE.complexity, 0.0, 0, Deferred(never))
    assert not (member.is_settled or member.is_shrunk)
    front = Front.from_members([member], rows=10.0, target_spread=1.0, target_largest=1.0)
    assert front.has_outlooks and carried(front[0]) is carried(member)
