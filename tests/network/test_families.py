"""Families of architectures: only allowed functions, as drawn from a seed, and what each family promises."""

from __future__ import annotations

import numpy as np
import pytest

from gmeql.formula.operators import get_operator
from gmeql.network.architecture import PRESETS
from gmeql.network.families import DEFAULT_FUNCTIONS, FAMILIES, RECIPES, FunctionSet, draw_architecture

SETS = {
    "all": DEFAULT_FUNCTIONS,
    "plain": ("add", "sub", "mul", "div"),
    "sums alone": ("sum",),
    "waves": ("add", "sin", "cos"),
    "one": ("square",),
}


@pytest.mark.parametrize("functions", SETS.values(), ids=SETS)
@pytest.mark.parametrize("family", FAMILIES)
def test_networks_hold_only_what_is_allowed(family: str, functions: tuple[str, ...]) -> None:
    for seed in range(20):
        drawn = draw_architecture(family, np.random.default_rng(seed), 3, FunctionSet(functions))
        if drawn is not None:
            assert {name for layer in drawn.layers for name in layer} <= {*functions, "id"}
            assert drawn.n_variables == 3 and drawn.n_outputs == 1


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_seed_draws_the_same_network(family: str) -> None:
    functions = FunctionSet(DEFAULT_FUNCTIONS)
    some, others = ([draw_architecture(family, np.random.default_rng(s), 4, functions) for s in range(5)] for _ in "ab")
    assert some == others and None not in some


@pytest.mark.parametrize("family", ["sums", "ratios"])
def test_families_of_sums_need_the_sum(family: str) -> None:
    assert draw_architecture(family, np.random.default_rng(0), 2, FunctionSet(["add", "mul"])) is None
    drawn = draw_architecture(family, np.random.default_rng(0), 2, FunctionSet(["mul", "sum"]))
    assert drawn is not None and drawn.layers[1] == ("sum", "sum")


def test_the_general_family_is_the_preset() -> None:
    drawn = draw_architecture("general", np.random.default_rng(0), 2, FunctionSet(DEFAULT_FUNCTIONS))
    assert drawn is not None and drawn.layers == PRESETS["general"] and not drawn.skip


@pytest.mark.parametrize(("family", "n_nodes"), [("small", 6), ("middle", 12), ("large", 20), ("huge", 30)])
def test_deep_networks_have_thin_layers(family: str, n_nodes: int) -> None:
    functions = FunctionSet([name for name in DEFAULT_FUNCTIONS if name not in ("sum", "prod")])
    drawn = draw_architecture(family, np.random.default_rng(0), 2, functions)
    assert drawn is not None and sum(len(layer) for layer in drawn.layers) == n_nodes
    assert max(len(layer) for layer in drawn.layers) <= RECIPES.nodes_per_layer


@pytest.mark.parametrize(("n_variables", "expected"), [(RECIPES.max_dense_inputs, True), (30, False)])
def test_wide_tables_get_no_product_of_all_their_columns(n_variables: int, expected: bool) -> None:
    functions = FunctionSet(DEFAULT_FUNCTIONS)
    drawn = [draw_architecture("large", np.random.default_rng(s), n_variables, functions) for s in range(20)]
    assert any("prod" in network.layers[0] for network in drawn if network is not None) is expected


def test_connections_reach_back_only_where_the_search_lets_them() -> None:
    functions = FunctionSet(DEFAULT_FUNCTIONS)
    for skip in (True, False):
        drawn = draw_architecture("complete", np.random.default_rng(0), 2, functions, skip)
        assert drawn is not None and drawn.skip is skip


def test_functions_are_sorted_by_the_part_they_play() -> None:
    functions = FunctionSet(["+", "pow", "sin", "square", "sum", "id"])
    assert (functions.binary, functions.powers, functions.dense) == (["add"], ["square"], ["sum"])
    assert functions.unary == ["sin", "square"]  # a power of the data's choosing, and id, are no functions to draw
    with pytest.raises(ValueError, match="at least one function"):
        FunctionSet(["id"])


def test_what_a_set_can_write() -> None:
    assert FunctionSet(["prod"]).allows({"mul", "div", "pow", "sqrt"}) and not FunctionSet(["prod"]).allows({"add"})
    assert FunctionSet(["sum"]).allows({"add", "sub", "neg"}) and not FunctionSet(["sum"]).allows({"mul"})
    assert FunctionSet(["div"]).allows({"inv"}) and not FunctionSet(["mul"]).allows({"inv"})


def test_default_functions_are_in_the_table_once() -> None:
    assert len(set(DEFAULT_FUNCTIONS)) == len(DEFAULT_FUNCTIONS)
    assert all(get_operator(name).name == name for name in DEFAULT_FUNCTIONS)


def test_d_is_no_node_of_a_network_but_may_be_asked_for() -> None:
    functions = FunctionSet(["+", "*", "sin", "D"])
    assert functions.derivatives and not FunctionSet().derivatives
    assert "D" not in (*functions.unary, *functions.binary, *functions.dense)
