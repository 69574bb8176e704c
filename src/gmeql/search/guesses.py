"""Formulas that the user guesses: fitted and offered at once, then the first elites of islands of their own.

A guess becomes one wiring of a network that has idle nodes around it, so that it can be changed. Its island draws from it as
from any elite.
"""

from __future__ import annotations


import numpy as np

from gmeql.formula.nodes import Call, Constant, Node, Variable, exponent_of
from gmeql.formula.operators import POWER_NAMES, get_operator
from gmeql.knowledge.templates import Template
from gmeql.network.architecture import Architecture
from gmeql.network.families import FunctionSet
from gmeql.network.repository import insert
from gmeql.search.islands.island import Island
from gmeql.search.polish.cutting import without_dead_terms
from gmeql.search.polish.scoring import Scored, clean, refit
from gmeql.search.offers.promotion import OutOfTime, polish_formula
from gmeql.search.data.readings import PLAIN
from gmeql.search.state import SearchState
from gmeql.search.templates.solutions import random_values

STARTS = 64
"""Random starts of a guess's named constants."""
SPARE_NODES = 2
"""Idle nodes beside each node of a guess, by which it can be changed."""

Source = tuple[bool, int]
"""Where a node reads: an input, or (True) another node of the guess."""


def try_guesses(state: SearchState, out_of_time: OutOfTime) -> list[Island]:
    """Offer every guess, fitted and cut to shape, and return an island for each that a network can hold."""
    knowledge = state.config.knowledge
    islands = []
    for guess in () if knowledge is None else knowledge.guesses:
        best = _fitted(guess, state)
        if best is None:
            continue
        state.offer([best])
        polish_formula(state, best.root, out_of_time, thorough=True)
        island = _island(best, state)
        if island is not None:
            islands.append(island)
    return islands


def _fitted(guess: Template, state: SearchState) -> Scored | None:
    """The guess with its constants fitted, from the best of several starts where it has named ones.

    A multiple of it with an offset is tried beside it: the shape is what people guess.
    """
    rng = np.random.default_rng([state.seed, len(guess.text)])
    starts = [[Constant(v) for v in random_values(guess, rng)] for _ in range(STARTS if guess.constants else 1)]
    roots = [guess.compose((), values) for values in starts]
    middle = Constant(float(np.median(state.rows.polished.target)))
    roots += [Call("add", (Call("mul", (Constant(1.0), root)), middle)) for root in roots]
    state.candidates += len(roots)
    fitted = refit(roots, state.rows.polished, keep_recognised=False)
    return min(fitted, key=lambda scored: scored.length, default=None)


def _island(best: Scored, state: SearchState) -> Island | None:
    """An island whose first elite is the guess; None where no network of the allowed functions holds it."""
    portfolio = state.portfolio
    plain = [
        i
        for i, s in enumerate(portfolio.strategies)
        if s.reading == PLAIN and portfolio.tables[s.view].view.is_raw_of(state.rows.n_variables)
    ]
    if not plain or portfolio.architecture is not None:
        return None
    rows = state.rows.polished
    root = clean(without_dead_terms(best.root, rows), rows)
    made = None if root is None else embedded(root, rows.n_variables, portfolio.functions, state.rng)
    if made is None:
        return None
    architecture, choices = made
    portfolio.opened += 1
    island = Island(
        architecture=architecture,
        reading=PLAIN,
        config=state.config.island_in_use,
        number=portfolio.opened,
        random_state=np.array([state.rng.integers(1, 2**63, dtype=np.int64)], np.uint64),
        strategy=plain[0],
        view=portfolio.strategies[plain[0]].view,
    )
    portfolio.attach(island)
    from gmeql.search.sampling.compile import INVALID, compile_once

    if compile_once(choices, island.wiring, island.rules)[1] == INVALID:
        return None
    items = {
        "choices": choices[None, :],
        "constants": np.full((1, architecture.n_weights + 2), np.nan),
        "complexity": np.array([best.complexity], np.int64),
    }
    loss = best.loss / portfolio.unit(island)
    marks = np.asarray(architecture.fingerprints(choices[None, :]), np.uint32)
    island.repository = insert(island.repository, np.array([loss]), marks, items)
    return island


def embedded(
    root: Node, n_variables: int, functions: FunctionSet, rng: np.random.Generator
) -> tuple[Architecture, np.ndarray] | None:
    """A network and the wiring in which it spells `root`, constants aside; None where its nodes cannot."""
    nodes: list[tuple[str, list[Source]]] = []
    top = _visit(root, n_variables, nodes)
    if top is None or not nodes:
        return None
    allowed = [*functions.binary, *functions.unary]
    if any(name not in allowed for name, _ in nodes):
        return None
    layers, place = [], []
    number = n_variables + 1
    for name, _ in nodes:
        spare = [allowed[int(i)] for i in rng.integers(0, len(allowed), SPARE_NODES)]
        layers.append((name, *spare))
        place.append(number)
        number += 1 + SPARE_NODES
    architecture = Architecture(n_variables=n_variables, layers=tuple(layers), skip=True)
    choices = rng.integers(0, architecture.n_choices)
    wanted = {place[k]: sources for k, (_, sources) in enumerate(nodes)} | {architecture.n_nodes - 1: [top]}
    for node, sources in wanted.items():
        for connection, (is_node, source) in zip(architecture.connections_of(node), sources, strict=True):
            choices[connection] = (place[source] if is_node else source) - architecture.source_low[connection]
    return architecture, architecture.validate_choices(choices)


def _visit(node: Node, one: int, nodes: list[tuple[str, list[Source]]]) -> Source | None:
    """Write a part as nodes of a network, factors left to its weights; None where it has no place there."""
    if isinstance(node, Variable):
        return False, node.index
    if isinstance(node, Constant):
        return False, one

    def add(name: str, *sources: Source | None) -> Source | None:
        if any(source is None for source in sources):
            return None
        nodes.append((name, [source for source in sources if source is not None]))
        return True, len(nodes) - 1

    assert isinstance(node, Call)
    if node.operator in ("id", "neg"):
        return _visit(node.args[0], one, nodes)
    exponent = exponent_of(node.operator, node.args)
    if exponent is not None:
        base = _visit(node.args[0], one, nodes)
        size = abs(exponent)
        if size != 1.0 and size not in POWER_NAMES:
            return None
        power = base if size == 1.0 else add(POWER_NAMES[size], base)
        return power if exponent > 0 else add("div", (False, one), power)
    args = [arg for arg in node.args if node.operator != "mul" or not isinstance(arg, Constant)]
    parts = [_visit(arg, one, nodes) for arg in args]
    if get_operator(node.operator).arity == 1:
        return add(node.operator, parts[0])
    result = parts[0] if parts else (False, one)
    for part in parts[1:]:
        result = add(node.operator, result, part)
    return result
