"""What chance finds: on noise the constant is the choice nearly always, what columns say stays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.model.choice.chance import (
    CHANCE,
    _Asked,
    chance_of,
    least_lengths,
    passed_over,
    step_lengths,
    with_chance,
)
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember
from gmeql.model.pareto.rules import SELECTION
from gmeql.network.families import FunctionSet
from gmeql.report.judgement import judge
from gmeql.search.config import SearchConfig
from gmeql.search.data.rows import SearchRows
from gmeql.search.events import Member
from gmeql.search.front.leaderboard import Leaderboard
from gmeql.search.front.plain_sums import judged_sums
from gmeql.search.judging.outlook import Outlook
from gmeql.search.sums.curves import SHAPES
from gmeql.search.sums.power_laws import power_laws
from gmeql.tables.training import Training
from judged_fronts import judged

NOISE = range(40)


def sums(X: np.ndarray, y: np.ndarray) -> Front:
    """The front of the constant and what all sums and curves add to it."""
    rows = SearchRows.of(X, y, config=SearchConfig())
    board = Leaderboard.start(rows.config, rows)
    board.look_out(rows)
    members = board.front(rows)
    spread = {"rows": len(y), "target_spread": float(y.std()), "target_largest": float(np.abs(y).max())}
    return Front.from_members(members[:1], **spread).with_sums(judged_sums(members, rows))


def luckiest(X: np.ndarray, y: np.ndarray) -> Front:
    """The front of the constant and the column that fits best."""
    factors = X.T @ y / np.sum(X**2, axis=0)
    best = int(np.argmin(np.sum((y[:, None] - X * factors) ** 2, axis=0)))
    return judged(X, y, f"{float(factors[best])!r}*x{best + 1}")


def noise(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((15, 20)), rng.standard_normal(15)


def asked(front: Front, X: np.ndarray, y: np.ndarray) -> Front:
    return with_chance(front, X, y, None, config=SearchConfig())


@pytest.fixture(scope="module")
def of_noise() -> list[Front]:
    return [asked(luckiest(*noise(seed)), *noise(seed)) for seed in NOISE]


def test_on_noise_the_constant_is_the_choice(of_noise: list[Front]) -> None:
    before = sum(bool(passed_over(front).expression.variables) for front in of_noise)
    after = sum(bool(front.select("best").expression.variables) for front in of_noise)
    assert before >= 5 and after <= 2


def test_a_sum_drawn_towards_0_that_chance_finds_as_well_steps_back() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 4))
    y = X @ np.full(4, 0.5) + rng.standard_normal(30)
    front = sums(X, y)
    assert front.select("best").is_shrunk and asked(front, X, y) is front
    doubtful = [m if not m.is_shrunk else replace(m, outlook=replace(m.outlook, chance=0.3)) for m in front]
    doubted = asked(replace(front, members=tuple(doubtful)), X, y)
    assert not doubted.select("best").is_shrunk


def test_a_long_sum_meets_any_few_rows_and_is_asked_however_much_it_saves() -> None:
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((25, 60)), rng.standard_normal(25)
    columns: list[int] = []
    for _ in range(20):
        left = y - X[:, columns] @ np.linalg.lstsq(X[:, columns], y, rcond=None)[0]
        columns.append(int(np.argmax(np.abs(X.T @ left) / np.sqrt(np.sum(X**2, axis=0)))))
    factors = np.linalg.lstsq(X[:, columns], y, rcond=None)[0]
    front = judged(X, y, " + ".join(f"{float(b)!r}*x{k + 1}" for k, b in zip(columns, factors, strict=True)))
    assert front.description_length(front[0]) - front.description_length(front[-1]) > CHANCE.sure
    assert chance_of(front, front[-1], front[0], X, y) > SELECTION.by_chance


def _chosen(X: np.ndarray, y: np.ndarray) -> FrontMember:
    return asked(sums(X, y), X, y).select("best")


def test_what_columns_say_stays() -> None:
    rng = np.random.default_rng(1)
    one, many = rng.standard_normal((40, 8)), rng.standard_normal((40, 8))
    of_one = _chosen(one, one[:, 2] + rng.standard_normal(40))
    of_many = _chosen(many, many @ np.full(8, 0.4) + rng.standard_normal(40))
    assert 2 in of_one.expression.variables and not of_one.is_by_chance
    assert len(of_many.expression.variables) >= 5 and not of_many.is_by_chance


def test_the_sum_of_all_columns_comes_before_the_luckiest_of_them() -> None:
    """Ten columns that resemble each other say the same, and each of them less than all together."""
    together = 0
    for seed in range(5):
        rng = np.random.default_rng([seed, 40])
        X = rng.standard_normal((40, 10)) + rng.standard_normal((40, 1))
        y = X @ np.full(10, 0.1) + rng.standard_normal(40)
        together += _chosen(X, y).is_shrunk
    assert together >= 4


def test_where_chance_finds_a_column_as_well_the_sum_of_all_is_asked(of_noise: list[Front]) -> None:
    seed, constant = next((k, f) for k, f in zip(NOISE, of_noise, strict=True) if f[0].is_by_chance)
    X, y = noise(seed)
    front = luckiest(X, y)
    factors = np.linalg.lstsq(X[:, :8], y, rcond=None)[0]
    other = judged(X, y, " + ".join(f"{float(b)!r}*x{k + 1}" for k, b in enumerate(factors)))[-1]
    promised = {"error": 0.9 * front[0].outlook.left_out, "luck": 1.0, "freedom": 3.0, "saved": 0.1}

    def chosen(chance: float | None) -> FrontMember:
        shrunk = Member(
            other.expression, other.loss, other.complexity, replace(other.outlook, **promised, chance=chance)
        )
        return with_chance(front, X, y, None, config=SearchConfig(), sums=[shrunk]).select("best")

    assert chosen(0.0).is_shrunk and chosen(0.0).outlook.by_chance == constant[0].outlook.by_chance
    assert not chosen(0.049).expression.variables  # of two that are asked one is lucky more often
    assert not chosen(None).expression.variables


def test_the_mark_is_kept_in_files_and_told(of_noise: list[Front]) -> None:
    seed, front = next((k, f) for k, f in zip(NOISE, of_noise, strict=True) if f[0].is_by_chance)
    again = Front.from_dict(front.to_dict())
    assert again.select("best").index == 0 and again[0].outlook == front[0].outlook
    X, y = noise(seed)
    told = " ".join(judge(front, 0, Training(X, y, tuple("abcdefghijklmnopqrst"), "y", None, np.arange(15), (), "t")))
    assert f"formula {passed_over(front).index}" in told and "target shuffled" in told
    with pytest.raises(ValueError, match="by_chance"):
        Outlook.from_dict(front[0].outlook.to_dict() | {"by_chance": 2.0})


def test_shares_of_noise_are_even() -> None:
    """The luckiest column of noise does as well as chance in any share of shuffles alike."""
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(300):
        X, y = rng.standard_normal((12, 3)), rng.standard_normal(12)
        luckiest = least_lengths(X, y[:, None])[0]
        shuffled = np.stack([rng.permutation(y) for _ in range(40)], axis=1)
        shares.append(float(np.mean(least_lengths(X, shuffled) <= luckiest)))
    assert np.mean(np.array(shares) <= 0.2) == pytest.approx(0.2, abs=0.09)
    assert np.mean(np.array(shares) <= 0.5) == pytest.approx(0.5, abs=0.11)


def test_units_do_not_matter_and_who_knows_better_is_not_asked(of_noise: list[Front]) -> None:
    seed, front = next((k, f) for k, f in zip(NOISE, of_noise, strict=True) if f[0].is_by_chance)
    X, y = noise(seed)
    huge = luckiest(X, y * 2.0**100)
    assert (
        chance_of(huge, huge.select("best"), huge[0], X, y * 2.0**100)
        == front[0].outlook.by_chance
        > SELECTION.by_chance
    )
    plain = luckiest(X, y)
    assert with_chance(plain, X, y, np.arange(1.0, 16.0), config=SearchConfig()) is plain
    assert with_chance(plain, X, y, None, config=SearchConfig(loss="robust")) is plain


def test_a_sum_of_all_stays_where_the_column_that_it_outdoes_is_no_chance() -> None:
    """That the columns say something is sure, so that the better way to say it may be chosen."""
    rng = np.random.default_rng([0, 40])
    X = rng.standard_normal((40, 10)) + rng.standard_normal((40, 1))
    y = X @ np.full(10, 0.1) + rng.standard_normal(40)
    shrunk = next(m for m in sums(X, y) if m.is_shrunk)
    front = luckiest(X, y).joined(replace(shrunk, outlook=replace(shrunk.outlook, chance=0.3)))
    assert chance_of(front, front.briefest(), front[0], X, y) < 0.02
    assert asked(front, X, y).select("best").is_shrunk


def test_who_is_asked_alone_may_be_as_likely_as_one_of_two() -> None:
    """A sum of all columns took a constant's place at the usual level where no column was worth asking about, and a column did
    where the sum was not: on noise a formula was chosen in 7 % of tables."""
    X, y = noise(0)
    front = luckiest(X, y)
    level = _Asked(front, front[0], X, y).level()
    assert SELECTION.by_chance / 2 - 0.01 < level < SELECTION.by_chance
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 4))
    table = X, X @ np.full(4, 0.5) + rng.standard_normal(30)
    alone = sums(*table)
    alone = replace(alone, members=tuple(m for m in alone if m.is_shrunk or not m.expression.variables))
    doubtful = tuple(m if not m.is_shrunk else replace(m, outlook=replace(m.outlook, chance=0.049)) for m in alone)
    assert asked(alone, *table).select("best").is_shrunk
    assert not asked(replace(alone, members=doubtful), *table).select("best").expression.variables


def _law_that_fits_best(X: np.ndarray, y: np.ndarray) -> Front:
    found = power_laws(X, y, np.ones(len(y)), FunctionSet(SearchConfig().functions))
    return judged(X, y, *(str(Expression(root, tuple(f"x{k + 1}" for k in range(X.shape[1])))) for root in found))


def test_a_power_law_of_several_columns_meets_the_largest_of_few_rows() -> None:
    """`8.37e-07*x2**2*x10**3*x11**3*sqrt(x3)` of twelve columns saved 12 nats on 15 rows of noise, which no product of
    two does, and erred 2.5 times as much as the mean on others."""
    before = after = 0
    for seed in range(12):
        rng = np.random.default_rng([seed, 15])
        X, y = rng.uniform(0.1, 10.0, (15, 12)), np.exp(1.2 * rng.standard_normal(15))
        front = _law_that_fits_best(X, y)
        before += bool(front.select("best").expression.variables)
        after += bool(asked(front, X, y).select("best").expression.variables)
    assert before >= 2 and after == 0
    rng = np.random.default_rng(1)
    X = rng.uniform(1.0, 5.0, (14, 6))
    y = 3.2 * X[:, 0] / X[:, 1] ** 2 * X[:, 4] * np.exp(0.1 * rng.standard_normal(14))
    assert asked(_law_that_fits_best(X, y), X, y).select("best").expression.variables == (0, 1, 4)


def test_a_step_parts_two_values_by_chance_and_is_no_law_for_that() -> None:
    """`0.5 - 0.5*tanh(136*x3 + 74.6)` met twelve rows of yes and no exactly, and erred a third more than the mean on others."""
    refused = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, 12])
        X, y = rng.standard_normal((12, 5)), (rng.standard_normal(12) > 0.7).astype(float)
        ends = [(float(X[y == 1, k].min()), float(X[y == 0, k].max()), k + 1) for k in range(5) if 2 <= y.sum()]
        gaps = [(high - low, 0.5 * (low + high), k) for high, low, k in ends if low < high]
        if gaps:
            gap, middle, k = max(gaps)
            front = judged(X, y, f"0.5 + 0.5*tanh({80 / gap!r}*(x{k} - {middle!r}))")
            assert front[-1].loss <= front.exact_level and front.select("best").expression.variables
            refused += not asked(front, X, y).select("best").expression.variables
            told = asked(front, X, y)
            if told.select("best").is_by_chance:
                assert "shuffled" in " ".join(
                    judge(told, 0, Training(X, y, tuple("abcde"), "y", None, np.arange(12), (), "t"))
                )
    assert refused >= 2
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 5))
    y = (X[:, 2] > 0.1).astype(float)
    front = judged(X, y, "0.5 + 0.5*tanh(5000.0*(x3 - 0.1))")
    assert asked(front, X, y).select("best").expression.variables == (2,)


def test_steps_leave_what_the_best_cut_leaves_in_any_unit() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((15, 1)), rng.standard_normal(15)
    ordered = y[np.argsort(X[:, 0])]
    left = min(sum(float(np.sum((part - part.mean()) ** 2)) for part in np.split(ordered, [i])) for i in range(1, 15))
    price = float(np.log(len(SHAPES) + 1) + 0.5 * CHANCE.step_constants * np.log(15))
    for unit in (1.0, 1e9):
        assert step_lengths(X * unit, y[:, None] + 9.0)[0] == pytest.approx(7.5 * np.log(left / 15) + price)
    assert step_lengths(np.ones((15, 1)), y[:, None])[0] > step_lengths(X, y[:, None])[0]  # nothing to cut
