"""benchmarks/calibration.py: tables that are what they say, chances that are fitted and counted rightly."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from programs import program
from scipy.special import ndtr

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node, Variable, build
from gmeql.model.choice.evidence import Calibration
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember


@pytest.fixture(scope="module")
def calibration() -> ModuleType:
    return program("benchmarks/calibration.py")


def test_tables_repeat_and_have_noise(calibration: ModuleType) -> None:
    for kind in calibration.KINDS:
        one, same = calibration.table(kind, 3), calibration.table(kind, 3)
        np.testing.assert_array_equal(one.y, same.y)
        assert len(one.fresh) == len(one.truth) == calibration.FRESH_ROWS
        assert np.std(one.measured - one.truth) > 0.04 * calibration.law_spread(one.truth)


def test_fitted_chances_are_those_that_were_drawn(calibration: ModuleType, rng: np.random.Generator) -> None:
    pairs = []
    for k in range(4000):
        z, longer = float(rng.uniform(-2, 4)), bool(k % 2)
        chance = 0.9 * ndtr(0.8 + 1.3 * z) if longer else ndtr(-0.4 + 0.5 * z)
        pairs.append([calibration.Comparison(k, z, longer, bool(rng.random() < chance))])
    found = calibration.fitted_calibration(pairs, Calibration())
    drawn = (-0.4, 0.5, 0.8, 1.3, 0.9)
    longer = (found.longer_offset, found.longer_slope, found.longer_most)
    assert (found.simpler_offset, found.simpler_slope, *longer) == pytest.approx(drawn, abs=0.15)
    for stated, observed, n in calibration.reliability(pairs, found):
        assert observed == pytest.approx(stated, abs=4 * np.sqrt(0.25 / n))


def test_only_constants_of_the_laws_own_structure_are_counted(calibration: ModuleType) -> None:
    given = calibration.table("linear", 0)
    design = np.column_stack([np.ones(len(given.y)), given.X[:, :2]])
    a, b, c = map(float, np.linalg.lstsq(design, given.y, rcond=None)[0])
    one, other = Variable(0), Variable(1)
    law = build("add", Constant(a), build("mul", Constant(b), one), build("mul", Constant(c), other))

    def record(root: Node) -> dict:
        expression = Expression(root, tuple(f"x{k}" for k in range(given.X.shape[1])))
        member = FrontMember(expression, 1.0, expression.complexity, 0.0, 0)
        front = Front.from_members([member], rows=len(given.y), target_spread=1.0, target_largest=1.0)
        return {"kind": "linear", "seed": 0, "front": front.to_dict()}

    covered = calibration.constants_covered(record(law))
    assert covered is not None and len(covered) == 3
    assert calibration.constants_covered(record(build("mul", Constant(b), one))) is None
    assert 0.9 < calibration.rows_covered(record(law)) < 0.99


def test_given_laws_of_every_kind_are_counted(calibration: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    calibration.report_given(range(7, 9))
    lines = dict(line.split(": ") for line in capsys.readouterr().out.splitlines())
    assert list(lines) == [*calibration.KINDS, "outliers, without rows far off"]
    assert lines["linear"].endswith("of 6") and lines["power law"].endswith("of 2")
