"""Drawing the candidates of one step: copy an elite, change some of it, compile, leave out what was tried enough."""

from __future__ import annotations

import numpy as np
from numba import float64, void

from gmeql.fitters.compiled import INLINE, compiled, part
from gmeql.search.sampling.compile import INVALID, compile_structure
from gmeql.search.sampling.moves import (
    CHOICES,
    CUMULATIVE,
    NOTES,
    STATE,
    WIRING,
    bypass_node,
    count_uses,
    exchange_node,
    insert_node,
)
from gmeql.search.sampling.random import normal, pick, uniform
from gmeql.search.sampling.tried import count_one

ATTEMPTS = 12
"""Structures that may be drawn for each wanted candidate before a draw ends with fewer."""
CROSS_CHANCE = 0.3
"""Chance of a node to take its wiring from the second elite."""
IDLE_CHANCE = 0.5
"""Chance of an idle connection to be re-sampled: idle parts drift freely."""
POWER_TRIES = 8
"""How many times as often a structure with fitted exponents may be tried: its fit depends most on the start."""
PLAIN_STARTS = 2
"""Starts of a structure that are not jittered."""
PRESENT_CHANCE = 0.5
"""Chance of an exponent of Π to start from a small half-integer; else its factor is absent at first."""
HALVES = 4
"""The largest such half-integer, in halves."""


@compiled(**INLINE)
def _copy_elite(state, mine, parent, wiring, elites, cross_share):
    """An elite's choices; in `cross_share` of cases some nodes' wiring comes from a second elite."""
    for c in range(len(mine)):
        mine[c] = elites.choices[parent, c]
    if elites.size > 1 and uniform(state) < cross_share:
        other = pick(elites.cumulative, elites.size, uniform(state))
        for node in range(wiring.n_inputs, len(wiring.nodes) - 2):
            if uniform(state) < CROSS_CHANCE:
                for c in range(wiring.nodes[node].first, wiring.nodes[node + 1].first):
                    mine[c] = elites.choices[other, c]


@part(
    void(STATE, CHOICES, NOTES, WIRING, CUMULATIVE, float64, float64, float64, float64, float64),
)
def _change(
    state, mine, values, wiring, cumulative, insert_share, bypass_share, exchange_share, mean_changes, resample_fraction
):
    """One of the moves, or where none fits, re-sampled connections."""
    count_uses(mine, wiring, values)
    n_active = np.int64(0)
    for node in range(wiring.n_inputs, len(wiring.nodes) - 1):
        if values[node].uses:
            n_active += wiring.nodes[node + 1].first - wiring.nodes[node].first
    kind = uniform(state)
    changed = False
    if n_active > 0:
        if kind < insert_share:
            changed = insert_node(state, mine, values, n_active, wiring, cumulative)
        elif kind < insert_share + bypass_share:
            changed = bypass_node(state, mine, values, n_active, wiring)
        elif kind < insert_share + bypass_share + exchange_share:
            changed = exchange_node(state, mine, values, n_active, wiring, cumulative)
    if changed:
        return
    # an exponential number of re-sampled connections, one at least on average
    changes = 1.0 - mean_changes * np.log(uniform(state) + 1e-300)
    rate = resample_fraction
    if mean_changes > 0:
        rate = min(rate, changes / max(n_active, 1))
    for node in range(wiring.n_inputs, len(wiring.nodes) - 1):
        chance = rate if values[node].uses else IDLE_CHANCE
        for c in range(wiring.nodes[node].first, wiring.nodes[node + 1].first):
            if uniform(state) < chance:
                mine[c] = pick(cumulative[c], wiring.connections[c].n_choices, uniform(state))


@compiled(**INLINE)
def _choose_start(state, start, weight_ids, n_constants, constants, parent, tries, n_weights, elites, numbers):
    """Where the fit starts: natural constants or an elite's, in either order, then jittered ones."""
    inherits = parent >= 0 and (uniform(state) < numbers.inherit_share) == (tries % 2 == 0)
    for p in range(n_constants):
        weight, value = constants[p].weight, constants[p].start
        weight_ids[p] = weight
        if value == 0.0 and weight < n_weights and not inherits:  # an exponent of Π
            if uniform(state) < PRESENT_CHANCE:
                half = 0.5 * (1.0 + np.floor(uniform(state) * HALVES))
                value = half if uniform(state) < 0.5 else -half
        if inherits:
            old = elites.constants[parent, weight]
            if np.isfinite(old):
                value = old
        if tries >= PLAIN_STARTS:
            value *= 1.0 + numbers.jitter * normal(state)
        start[p] = value


@compiled()
def draw_candidates(state, wiring, rules, cumulative, elites, numbers, tried, batch, draft):
    """Draw new structures and compile them, until `batch` is full or drawing finds too few. Returns how many.

    `state` is that of the random numbers, `cumulative` [C, M] holds the cumulative choice probabilities of the
    structure parameters, `draft` is room to work in; the others are the named tuples of `arrays.py`. A candidate is
    wholly new with probability `fresh_share` (or while there are no elites), else an elite's copy with changes.
    """
    # Unpacked once: each array that is read by name counts references.
    choices, programs, lengths, n_constants, weight_ids, starts, hashes, complexities = batch
    known_keys, known_counts, own_keys, own_counts, table_key = tried
    n_candidates = len(lengths)
    drawn = 0
    for _ in range(n_candidates * ATTEMPTS):
        if drawn >= n_candidates:
            break
        mine = choices[drawn]
        parent = -1
        if elites.size > 0 and uniform(state) >= numbers.fresh_share:
            parent = pick(elites.cumulative, elites.size, uniform(state))
            _copy_elite(state, mine, parent, wiring, elites, numbers.cross_share)
            _change(
                state, mine, draft.values, wiring, cumulative, numbers.insert_share, numbers.bypass_share,
                numbers.exchange_share, numbers.mean_changes, numbers.resample_fraction,
            )  # fmt: skip
        else:
            for c in range(len(mine)):
                mine[c] = pick(cumulative[c], wiring.connections[c].n_choices, uniform(state))
        made = compile_structure(mine, wiring, rules, draft, programs[drawn])
        if made.length == INVALID or made.complexity > numbers.max_complexity:
            continue
        key = made.key ^ table_key
        tries = count_one(known_keys, known_counts, key, 0) + count_one(own_keys, own_counts, key, 0)
        if tries >= (numbers.max_tries if made.nonlinear else 1) * (POWER_TRIES if made.has_powers else 1):
            continue
        count_one(own_keys, own_counts, key, 1)
        _choose_start(
            state, starts[drawn], weight_ids[drawn], made.n_constants, draft.constants, parent, tries, wiring.n_weights,
            elites, numbers,
        )  # fmt: skip
        lengths[drawn] = made.length
        n_constants[drawn] = made.n_constants
        hashes[drawn] = key
        complexities[drawn] = made.complexity
        drawn += 1
    return drawn
