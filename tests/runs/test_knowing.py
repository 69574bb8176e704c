"""What the command line says about units, forms and constraints, as the estimator takes it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gmeql.formula.expression import Expression
from gmeql.formula.parsing import parse_tree
from gmeql.runs.knowing import check_knowledge, knowledge_of, knowledge_options
from gmeql.runs.settings import ConfigError, FitSettings, reproduce_command, resolve

ROWS: Any = SimpleNamespace(names=("m", "v"), target="E", X=np.array([[1.0, 2.0], [3.0, 4.0]]), y=np.array([1.0, 2.0]))


def settings(**given: Any) -> FitSettings:
    return resolve(given, environment={})


def test_nothing_said_is_nothing_known() -> None:
    assert knowledge_options(FitSettings(), ROWS) == {} and check_knowledge(FitSettings(), ROWS) is None
    assert knowledge_of(FitSettings(), ROWS) is None


def test_units_with_the_targets_among_them() -> None:
    given = settings(units="m=kg, v=m/s, E=J, other=K", constant_units="m/s**2", unit_check="soft")
    assert knowledge_options(given, ROWS) == {
        "units": {"m": "kg", "v": "m/s"},
        "target_units": "J",
        "unit_check": "soft",
        "constant_units": ["m/s**2"],
    }
    assert knowledge_options(settings(units="m=kg,v=m/s,E=J", constant_units="any"), ROWS)["constant_units"] == "any"


def test_categories_are_pure_numbers_that_nobody_has_to_name() -> None:
    rows: Any = SimpleNamespace(
        names=("m", "lab=a", "odd=b"), target="E", X=np.array([[1.0, 0.0, 2.0], [3.0, 1.0, 0.0]])
    )
    with pytest.raises(ConfigError, match="column 'odd=b' has none; add odd=b="):
        knowledge_options(settings(units="m=kg,E=J"), rows)
    with pytest.raises(ConfigError, match="columns 'm', 'odd=b' have none; add m=...,odd=b=... "):
        knowledge_options(settings(units="E=J"), rows)
    found = knowledge_options(settings(units="m=kg,odd=b=m/s,E=J"), rows)
    assert found["units"] == {"m": "kg", "lab=a": "1", "odd=b": "m/s"}


def test_units_of_pinned_parts_follow() -> None:
    names = ("m", "v", "(m*v)")
    rows: Any = SimpleNamespace(names=names, target="E")
    pin = Expression(parse_tree("m*v", ["m", "v"]), ("m", "v"))
    assert knowledge_options(settings(units="m=kg,v=m/s,E=J"), rows, [pin])["units"]["(m*v)"] == "kg*m/s"


def test_forms_and_constraints() -> None:
    given = settings(template="a*f(v) + b", constants="a=0..10,b=..3", guess=["m*v"], constraint=["increasing in m"])
    known = knowledge_of(given, ROWS)
    assert knowledge_options(given, ROWS)["constants"] == {"a": (0.0, 10.0), "b": (None, 3.0)}
    assert known is not None and known.template is not None and known.scene is not None
    assert known.scene.ranges == ((1.0, 3.0), (2.0, 4.0)) and len(known.guesses) == len(known.constraints) == 1


def test_tables_of_a_settings_file(tmp_path: Any) -> None:
    file = tmp_path / "fit.toml"
    file.write_text('units = {m = "kg", v = "m/s", E = "J"}\ntemplate = "a*f(v)"\nconstants = {a = [0, 10]}\n')
    given = resolve({}, file=file, environment={})
    assert given.units == ("m=kg", "v=m/s", "E=J") and given.constants == ("a=0..10",)
    assert FitSettings.from_dict(given.to_dict()) == given


def test_the_command_that_repeats_a_run_says_all_of_it() -> None:
    given = settings(units="m=kg,v=m/s,E=J", constraint=["symmetric in m, v", "output >= 0"])
    command = reproduce_command({"settings": given.to_dict(), "data": {"source": "d.csv", "target": "E"}})
    assert "--units m=kg,v=m/s,E=J" in command
    assert "--constraint 'symmetric in m, v' --constraint 'output >= 0'" in command


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"units": "m=kg,v=m/s"}, "--units: the target's is missing"),
        ({"units": "m=kg,E=J"}, "column 'v' has none"),
        ({"units": "kg"}, "is not name=value"),
        ({"units": "m=kg,v=m/s,E=K"}, "for K: 0 = 1"),
        ({"template": "f(q"}, "--template"),
        ({"constants": "a=0..1"}, "--constants"),
        ({"template": "a*f(m)", "constants": "a=1"}, "low..high"),
        ({"guess": ["h(m)"]}, "--guess"),
        ({"constraint": ["blub"]}, "--constraint"),
    ],
)
def test_refusals_name_the_flag(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_knowledge(settings(**given), ROWS)
    assert says in str(caught.value)
