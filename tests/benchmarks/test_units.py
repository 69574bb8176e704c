"""The units of the Feynman cases are those of their formulas, and one case runs with and without them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from programs import program

from gmeql.evaluation.problems.cases import problem_from_case
from gmeql.formula.parsing import parse_open_form
from gmeql.knowledge.knowledge import read_knowledge
from gmeql.knowledge.units import read_unit

ROOT = Path(__file__).parents[2]
UNITS = json.loads((ROOT / "benchmarks" / "cases" / "feynman-units.json").read_text(encoding="utf-8"))
FORMULAS = {
    "I.10.7": "m_0/sqrt(1-v**2/c**2)",
    "I.41.16": "h*omega**3/(c**2*(exp(h*omega/(kb*T))-1))",
    "II.35.21": "n_rho*mom*tanh(mom*B/(kb*T))",
    "test_5": "2*pi*d**(3/2)/sqrt(G*(m1+m2))",
    "test_17": "1/(2*m)*(p**2+m**2*omega**2*x**2*(1+alpha*x/y))",
}


def test_every_unit_can_be_read() -> None:
    assert len(UNITS) == 40
    for units in UNITS.values():
        assert "target" in units and all(read_unit(unit) is not None for unit in units.values())


@pytest.mark.parametrize("name", FORMULAS)
def test_the_law_keeps_them(name: str) -> None:
    names = [column for column in UNITS[name] if column != "target"]
    (known,) = read_knowledge(names, units=[UNITS[name][n] for n in names], target_units=UNITS[name]["target"])
    assert known is not None and known.units is not None
    assert known.units.keeps(parse_open_form(FORMULAS[name], names).root)


def test_one_case_with_and_without() -> None:
    benchmark = program("benchmarks/units.py")
    columns = [{"name": name, "low": 1.0, "high": 5.0} for name in ("q", "C")]
    problem = problem_from_case(
        {"name": "I.25.13", "variables": columns, "formula": "q/C", "n_train": 100, "n_test": 100}
    )
    for units in (None, UNITS["I.25.13"]):
        record = benchmark.run(problem, units, 0.01, 0.3, 100, 0)
        assert record["solved"] and record["units"] is (units is not None)
