"""benchmarks/groups.py: tables that follow their laws, a judgement that tells a law from what is near it."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from programs import program

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.search.groups.table import OwnConstants


@pytest.fixture(scope="module")
def groups() -> ModuleType:
    return program("benchmarks/groups.py")


def test_tables_repeat_and_noise_is_a_share_of_the_spread(groups: ModuleType) -> None:
    for name in groups.LAWS:
        X, codes, truth, y = groups.table(name, 0.1, 3)
        np.testing.assert_array_equal(y, groups.table(name, 0.1, 3)[3])
        assert len(X) == len(codes) == groups.GROUPS * groups.ROWS
        assert np.isfinite(truth).all()
        assert np.std(y - truth) == pytest.approx(0.1 * truth.std(), rel=0.1)


@pytest.mark.parametrize(("text", "holds"), [("k*exp(l*t)", True), ("k/(t + l)", False)])
def test_a_law_is_told_from_what_is_near_it(groups: ModuleType, text: str, holds: bool) -> None:
    X, codes, truth, _ = groups.table("decay", 0.1, 0)
    own = OwnConstants("group", tuple(map(str, range(10))), np.tile([1.0, -1.0 if holds else 1.0], (10, 1)))
    root = parse_tree(text, ["t", "k", "l"])
    model = SimpleNamespace(group_constants_=own, expression_=Expression(root, own.names(root, ["t"])))
    error, n_own = groups.holds_law(model, X, codes, truth)
    assert (error < groups.HOLDS) == holds
    assert n_own == 2


def test_the_report_counts_by_law_and_noise(groups: ModuleType) -> None:
    records = [{"law": "gas", "noise": 0.0, "solved": True}, {"law": "gas", "noise": 0.0, "solved": False}]
    assert "| gas | 1/2 |" in groups.report(records)
    assert groups.report(records).endswith("| share | 50.0% |")
