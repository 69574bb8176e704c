"""The front, and the selection rules against data of known truth."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmeql.formula.bounds import Bounds
from gmeql.formula.constants import free_constants
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.formula.parsing import parse_tree
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.search.events import Member
from gmeql.search.judging.outlook import Outlook
from judged_fronts import judged

X1 = Variable(0)


@dataclass(frozen=True)
class Found:
    expression: Expression
    loss: float
    complexity: int


def formula(degree: int, constants: list[float] | None = None) -> Expression:
    """A polynomial of `degree` with that many + 1 constants."""
    constants = constants or [1.5 + k for k in range(degree + 1)]
    terms = [Constant(constants[0])]
    for k in range(1, degree + 1):
        terms.append(Call("mul", (Constant(constants[k]), Call("pow", (X1, Constant(float(k)))))))
    return Expression(terms[0] if degree == 0 else Call("add", tuple(terms)), ("x1",))


def front_of(losses: list[float], rows: float = 100, spread: float = 1.0, largest: float = 2.0) -> Front:
    expressions = [formula(k) for k in range(len(losses))]
    members = [Found(e, loss, e.complexity) for e, loss in zip(expressions, losses, strict=True)]
    return Front.from_members(members, rows=rows, target_spread=spread, target_largest=largest)


def polynomial_front(x: np.ndarray, y: np.ndarray, degrees: int) -> Front:
    members = []
    for degree in range(degrees + 1):
        coefficients = np.polynomial.polynomial.polyfit(x, y, degree)
        expression = formula(degree, coefficients.tolist())
        members.append(
            Found(expression, float(np.sqrt(np.mean((expression(x[:, None]) - y) ** 2))), expression.complexity)
        )
    return Front.from_members(members, rows=len(y), target_spread=float(y.std()), target_largest=float(np.abs(y).max()))


class TestShape:
    @given(
        st.lists(
            st.tuples(st.integers(0, 8), st.floats(0, 1e6) | st.just(math.inf) | st.just(math.nan)),
            min_size=1,
            max_size=30,
        )
    )
    def test_members_are_the_undominated_ones(self, figures: list[tuple[int, float]]) -> None:
        members = [Found(formula(degree), loss, formula(degree).complexity) for degree, loss in figures]
        finite = {(m.complexity, m.loss) for m in members if math.isfinite(m.loss)}
        if not finite:
            with pytest.raises(ValueError, match="at least one member"):
                Front.from_members(members, rows=10, target_spread=1, target_largest=1)
            return
        front = Front.from_members(members, rows=10, target_spread=1, target_largest=1)
        undominated = {
            (c, loss)
            for c, loss in finite
            if not any((c2 <= c and l2 < loss) or (c2 < c and l2 <= loss) for c2, l2 in finite)
        }
        assert [(m.complexity, m.loss) for m in front] == sorted(undominated)
        assert len(front) + len(front.others) == sum(math.isfinite(loss) for _, loss in figures)
        assert [m.index for m in front] == list(range(len(front)))

    def test_score_is_the_drop_of_log_loss_per_complexity(self) -> None:
        front = front_of([1.0, 0.5, 0.1])
        for before, member in pairwise(front):
            expected = math.log(before.loss / member.loss) / (member.complexity - before.complexity)
            assert member.score == pytest.approx(expected)
        assert front[0].score == 0.0

    def test_beaten_formulas_stay_beside_the_front(self) -> None:
        members = [Found(formula(0), 1.0, 1), Found(formula(1), 0.5, 5)]
        beaten = [Found(formula(2), 0.1, 3), Found(formula(3), 0.7, 9), Found(formula(3), math.inf, 9)]
        front = Front.from_members(members, rows=5, target_spread=1, target_largest=1, beaten=beaten)
        assert [m.loss for m in front] == [1.0, 0.5]
        assert [m.loss for m in front.others] == [0.1, 0.7]
        assert front.to_frame(others=True)["loss"].tolist() == [1.0, 0.5, 0.1, 0.7]

    def test_it_is_immutable_and_survives_pickle(self) -> None:
        front = front_of([1.0, 0.5])
        with pytest.raises(AttributeError):
            front.rows = 3
        again = pickle.loads(pickle.dumps(front))  # noqa: S301 - our own bytes
        assert list(again) == list(front)
        assert again.rows == front.rows

    def test_index_beyond_the_front_says_what_there_is(self) -> None:
        with pytest.raises(IndexError, match="0 to 1"):
            front_of([1.0, 0.5])[7]

    def test_members_evaluate_and_print(self) -> None:
        member = front_of([1.0, 0.5])[1]
        assert member([[2.0]]).tolist() == [1.5 + 2.5 * 2.0]
        assert str(member) == str(member.expression)
        assert member.latex() == member.expression.latex()

    def test_frame_holds_every_member(self) -> None:
        frame = front_of([1.0, 0.5, 0.1]).to_frame()
        assert list(frame.columns) == ["complexity", "loss", "score", "formula"]
        assert frame["loss"].tolist() == [1.0, 0.5, 0.1]

    def test_html_escapes_names(self) -> None:
        expression = Expression(Variable(0), ("<script>alert(1)</script>",))
        front = Front.from_members([Found(expression, 1.0, 1)], rows=5, target_spread=1, target_largest=1)
        assert "<script" not in front.to_html(selected=0)


class TestStorage:
    def test_dict_round_trip(self) -> None:
        front = front_of([1.0, 0.5, 1e-17])
        again = Front.from_dict(front.to_dict())
        assert list(again) == list(front)
        assert (again.rows, again.target_spread, again.target_largest) == (100, 1.0, 2.0)

    @pytest.mark.parametrize(
        "harm",
        [
            lambda d: d.pop("rows"),
            lambda d: d.update(rows=-1),
            lambda d: d.update(rows=True),
            lambda d: d.update(more=1),
            lambda d: d.update(members=[]),
            lambda d: d.update(members={}),
            lambda d: d["members"].reverse(),
            lambda d: d["members"][0].update(loss=math.nan),
            lambda d: d["members"][0].update(loss="1"),
            lambda d: d["members"][0].update(complexity=2),
            lambda d: d["members"][0].update(complexity=1.0),
            lambda d: d["members"][1].update(loss=5.0),
            lambda d: d["members"][0].pop("expression"),
            lambda d: d["members"].append(d["members"][0]),
        ],
    )
    def test_what_is_not_a_front_is_refused(self, harm) -> None:
        data = front_of([1.0, 0.5, 0.1]).to_dict()
        harm(data)
        with pytest.raises(ValueError):
            Front.from_dict(data)


class TestSelection:
    def test_best_finds_the_true_degree_under_noise(self) -> None:
        rng = np.random.default_rng(3)
        right = 0
        for _ in range(40):
            x = rng.uniform(-1, 1, 200)
            y = 1 - 2 * x + 3 * x**2 + 0.2 * rng.standard_normal(200)
            right += len(free_constants(polynomial_front(x, y, 8).select("best").expression)) == 5  # 3 and 2 exponents
        assert right >= 38

    def test_best_takes_the_simplest_exact_member(self) -> None:
        assert front_of([1.0, 1e-3, 3e-16, 1e-16]).select("best").index == 2

    def test_best_does_not_fall_for_a_near_miss(self) -> None:
        assert front_of([1.0, 3e-8, 1e-16]).select("best").index == 2
        assert front_of([1.0, 5e-11, 1e-16]).select("best").index == 2

    def test_best_ignores_units(self) -> None:
        losses = np.array([1.0, 0.3, 0.29, 0.289])
        for scale in (1e-100, 1.0, 1e100):
            front = front_of((losses * scale).tolist(), spread=scale, largest=2 * scale)
            assert front.select("best").index == 1

    def test_best_keeps_a_degree_of_freedom(self) -> None:
        assert front_of([1.0, 0.4, 1e-16], rows=3).select("best").index < 2

    def test_accurate_simple_and_own_rules(self) -> None:
        front = front_of([1.0, 0.01, 0.009, 0.0])
        assert front.select("accurate").index == 3
        assert front_of([1.0, 0.01, 0.009]).select("simple").index == 1
        assert front.select(lambda f: 2).index == 2
        assert front.select(lambda f: f[1]).index == 1

    def test_validation_takes_the_simplest_within_one_standard_error(self) -> None:
        rng = np.random.default_rng(0)
        x = rng.uniform(-1, 1, 30)
        y = 1 - 2 * x + 0.1 * rng.standard_normal(30)
        front = polynomial_front(x, y, 12)
        fresh = rng.uniform(-1, 1, 1000)
        chosen = front.select("validation", X=fresh[:, None], y=1 - 2 * fresh + 0.1 * rng.standard_normal(1000))
        assert chosen.index == 1

    @pytest.mark.parametrize("rule", ["fastest", None, 3])
    def test_unknown_rules_are_named(self, rule) -> None:
        with pytest.raises(ValueError, match="best"):
            front_of([1.0]).select(rule)

    @pytest.mark.parametrize("answer", [None, "best", True, FrontMember(formula(0), 9.0, 1, 0.0, 0)])
    def test_own_rules_must_name_a_member(self, answer) -> None:
        with pytest.raises(ValueError, match="member of the front"):
            front_of([1.0, 0.5]).select(lambda front: answer)

    def test_validation_needs_rows(self) -> None:
        with pytest.raises(ValueError, match="X and y"):
            front_of([1.0]).select("validation")


def test_where_losses_are_nats_the_expected_cost_of_unseen_rows_decides() -> None:
    """Eight columns win over one where unseen rows are expected to cost less, luck included, and not else."""
    names = tuple(f"x{i + 1}" for i in range(20))
    terms = [Call("mul", (Constant(1.5), Variable(i))) for i in range(8)]
    roots = [Call("add", (Constant(0.5), *terms[:1])), Call("add", (Constant(0.5), *terms))]
    for error, chosen in ((0.52, 0), (0.48, 1)):
        found = [
            Outlook(each, 0.01, False, 2.0, Bounds(-1.0, 1.0, True), luck) for each, luck in ((0.5, 1.1), (error, 1.3))
        ]
        members = [
            Member(Expression(root, names), loss, Expression(root, names).complexity, outlook=one)
            for root, loss, one in zip(roots, (0.45, 0.33), found, strict=True)
        ]
        front = Front.from_members(members, rows=150, target_spread=0.5, target_largest=1.0, loss="logistic")
        assert front.select().index == chosen
        assert front.description_length(front[1]) == pytest.approx(150 * error)


class TestSums:
    """Sums of columns that join a finished front."""

    NAMES = ("a", "b", "c")

    def member(self, text: str, loss: float, promised: float, **outlook: float) -> Member:
        expression = Expression(parse_tree(text, self.NAMES), self.NAMES)
        known = Outlook(promised, 0.01, False, outlook.pop("support", 2.0), Bounds(-9.0, 9.0, True), **outlook)
        return Member(expression, loss, expression.complexity, known)

    def front(self, *members: Member) -> Front:
        return Front.from_members(members, rows=40, target_spread=1.0, target_largest=3.0)

    def test_an_odd_form_must_be_clearly_better_than_a_plain_sum(self) -> None:
        plain, curve = self.member("0.5*a + 0.2", 0.90, 0.93), self.member("0.7*sin(1.1*a)", 0.80, 0.82)
        assert str(self.front(plain, curve).select()) == "0.5*a + 0.2"
        clear = self.member("0.7*sin(1.1*a)", 0.60, 0.62)
        assert str(self.front(plain, clear).select()) == str(clear.expression)

    def test_the_briefest_sum_joins_and_odd_ones_step_back(self) -> None:
        mean = self.member("0.2", 1.0, 1.02)
        odd = self.member("exp(0.3*a*b)/2.1", 0.80, 0.90)
        line = self.member("0.5*a + 0.3*b + 0.2*c + 0.1", 0.84, 0.75)
        front = self.front(mean, odd).with_sums([line])
        assert [str(m) for m in front] == [str(mean.expression), str(line.expression)]
        assert front.select().expression == line.expression
        assert odd.expression in [m.expression for m in front.others]
        poor = self.member("0.5*a + 0.3*b + 0.2*c + 0.1", 0.84, 0.99)
        unsupported = self.member("0.5*a + 0.3*b + 0.2*c + 0.1", 0.84, 0.75, support=0.1)
        for sums in ([], [poor], [unsupported]):
            assert self.front(mean, odd).with_sums(sums).select().expression != line.expression

    def test_the_next_sum_joins_where_the_briefest_is_briefer_by_more_than_its_gain_is_sure_of(self) -> None:
        """Prices of houses: slopes by kind were the briefest and unsure, and the plain sum behind them was not looked at."""
        mean, line = self.member("0.2", 1.0, 1.02), self.member("0.5*a + 0.2", 0.80, 0.84, gains=((1, 3.0),))
        kinds = self.member("0.5*a + 0.3*b*c + 0.1", 0.60, 0.62, nats=3.0, gains=((1, 3.0), (5, 0.6)))
        plain = self.member("0.5*a + 0.3*b + 0.1", 0.64, 0.66, gains=((1, 3.0), (5, 0.6)))
        front = self.front(mean, line)
        assert front.description_length(_figured(kinds)) < front.description_length(_figured(plain))
        assert front.with_sums([kinds, plain]).select().expression == plain.expression
        assert front.with_sums([kinds]) == front

    def test_a_form_is_no_surer_beside_a_sum_that_came_later(self) -> None:
        """Over the line its gain counted as far as it is sure, over the plain sum that joined it counted whole."""
        mean, line = self.member("0.2", 1.0, 1.02), self.member("0.5*a + 0.2", 0.80, 0.84, gains=((1, 3.0),))
        odd = self.member("exp(0.3*a*b)/sin(c)", 0.30, 0.35, gains=((1, 3.0), (5, 0.6)))
        plain = self.member("0.5*a + 0.3*b + 0.1", 0.64, 0.66, gains=((1, 3.0), (5, 1.6)))
        front = self.front(mean, line, odd)
        assert front.select().expression == line.expression
        assert front.with_sums([plain]).select().expression == plain.expression

    def test_factors_drawn_towards_0_are_taken_for_less_error_on_rows_left_out(self) -> None:
        mean, line = self.member("0.2", 1.0, 1.02), self.member("0.5*a + 0.2", 0.80, 0.84)
        shrunk = self.member("0.4*a + 0.1*b - 0.1*c + 0.1", 0.79, 0.83, freedom=2.5, nats=1.4, support=-1.0)
        front = self.front(mean, line).with_sums([shrunk])
        assert front.select().is_shrunk and not front[1].is_shrunk
        assert Front.from_dict(front.to_dict()) == front
        worse = self.member("0.4*a + 0.1*b - 0.1*c + 0.1", 0.79, 0.90, freedom=3.9, nats=1.4)
        assert self.front(mean, line).with_sums([worse]) == self.front(mean, line)

    @pytest.mark.parametrize(
        ("anew", "taken"), [((1.2,), True), ((1.01,), True), ((0.97,), False), ((0.9, 1.3), False)]
    )
    def test_of_columns_chosen_anew_the_error_decides(self, anew: tuple[float, ...], taken: bool) -> None:
        """By rows left out one by one the sum of one column errs much less, as the luckiest of many does."""
        mean, line = self.member("0.2", 1.0, 1.02), self.member("0.5*a + 0.2", 0.60, 0.64)
        shrunk = self.member("0.4*a + 0.1*b - 0.1*c + 0.1", 0.79, 0.83, freedom=2.5, saved=0.5, chosen_anew=anew)
        front = self.front(mean, line).with_sums([shrunk])
        assert front.select().is_shrunk == taken
        assert Front.from_dict(front.to_dict()).members == front.members

    def test_the_sum_of_all_columns_was_not_chosen_among_others(self) -> None:
        """One column is all there is: rows left out one by one know what it is worth."""
        mean, line = self.member("0.2", 1.0, 1.02), self.member("0.5*a + 0.2", 0.60, 0.64)
        shrunk = self.member("0.4*a + 0.1", 0.62, 0.65, freedom=1.8, saved=0.5, chosen_anew=(1.02,))
        assert not self.front(mean, line).with_sums([shrunk]).select().is_shrunk

    def test_columns_of_noise_do_not_replace_the_constant(self) -> None:
        mean, form = self.member("0.2", 1.0, 1.02), "0.04*a + 0.01*b - 0.01*c + 0.1"
        lucky = self.member(form, 0.95, 1.03, freedom=1.5, nats=1.4, luck=1.05)
        assert str(self.front(mean).with_sums([lucky]).select()) == "0.2"
        better = self.member(form, 0.95, 1.00, freedom=1.5, nats=1.4, luck=1.05)
        assert self.front(mean).with_sums([better]).select().is_shrunk

    def test_exact_fronts_and_such_as_nobody_judged_stay(self) -> None:
        sums = [self.member("0.5*a + 0.3*b + 0.2*c + 0.1", 0.5, 0.5)]
        exact = self.front(self.member("0.2", 1.0, 1.0), self.member("sin(a)", 1e-15, 1e-15))
        assert exact.with_sums(sums) is exact
        unknown = front_of([1.0, 0.5])
        assert unknown.with_sums(sums) is unknown


def _figured(member: Member) -> FrontMember:
    return FrontMember(member.expression, member.loss, member.complexity, 0.0, -1, member.outlook)


def test_who_states_no_constant_has_0_and_not_the_mean() -> None:
    """A mean of 1.9 standard errors counted as no constant and kept the smaller error of one."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 2)), rng.standard_normal(200)
    y = (y - y.mean()) / y.std()
    zero, near = judged(X, y, "x1"), judged(X, y + 0.134, "x1")
    assert near.n_fitted(near[0]) == 0
    more = near.description_length(near[0]) - zero.description_length(zero[0])
    assert more == pytest.approx(100 * math.log(1 + 0.134**2), abs=1e-6)
