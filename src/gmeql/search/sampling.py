"""Drawing candidates of the fitted method, compiled: copy an elite, re-sample connections, write the program.

Sections 4.2 and 4.3 of the paper, with hard choices: a candidate copies an elite drawn by rank, some of its active
connections are re-sampled from the structure parameters, and what it spells is compared with all that was tried.
The wiring is turned into a flat program for ``gmeql.fitters``: only nodes that the output depends on, only constants
that are not redundant. What cannot be a sensible formula (sin of a constant, a/a, a root of a square) is refused here,
before anything is fitted.

Input slots of a program: V variables, the constant 1, then log of each variable (for Π over the input layer).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gmeql.fitters.programs import MAX_CONSTANTS, MAX_NODES, POWER_FITTED

_OPTIONS = dict(cache=True, nogil=True, error_model="numpy")

MAX_SOURCES = 64
"""Nodes a network of the fitted method may have, inputs included, is bounded by the scratch rows below."""
SCRATCH = 512

OUTPUT_SCALE, OUTPUT_OFFSET = 0, 1
"""Places of the two output constants behind the weights of the architecture."""

# Facts about a slot that decide which constants are redundant and which wirings make no sense.
_CONSTANT, _SCALED, _POWER, _TRIGONOMETRIC, _EXPONENTIAL, _LOGARITHM, _SUM, _HAS_ONE = 1, 2, 4, 8, 16, 32, 64, 128

INVALID = -1


@njit(**_OPTIONS)
def _next(state):
    """SplitMix64: 64 random bits; ``state`` is a one-element uint64 array."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(**_OPTIONS)
def _uniform(state):
    return float(_next(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(**_OPTIONS)
def _normal(state):
    """Standard normal by Box and Muller."""
    return np.sqrt(-2.0 * np.log(_uniform(state) + 1e-300)) * np.cos(6.283185307179586 * _uniform(state))


@njit(**_OPTIONS)
def _scramble(value):
    value = (value ^ (value >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    value = (value ^ (value >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return value ^ (value >> np.uint64(32))


@njit(**_OPTIONS)
def _search_cumulative(cumulative, n, u):
    """First index whose cumulative weight exceeds u (in 0..1 of the total)."""
    goal = u * cumulative[n - 1]
    low, high = 0, n - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > goal:
            high = middle
        else:
            low = middle + 1
    return low


# One type for all callers: left to itself the compiler makes a version for each mix of literal and computed numbers.
@njit("void(i2[:, ::1], i8, i8, i8, i8, i8, i8)", **_OPTIONS)
def _emit(program, k, op, left, right, left_constant, right_constant):
    program[0, k] = op
    program[1, k] = left
    program[2, k] = right
    program[3, k] = left_constant
    program[4, k] = right_constant


@njit(**_OPTIONS)
def compile_structure(
    choices,
    node_op,
    first_connection,
    source_low,
    dense_low,
    dense_high,
    first_dense,
    n_inputs,
    n_variables,
    positive,
    n_weights,
    with_offset,
    max_nesting,
    program,
    weight_ids,
    fresh,
    active,
    scratch_int,
    scratch_hash,
):
    """Write the program of one structure.

    Fills ``program`` [5, nodes], ``weight_ids`` (which weight each constant is), ``fresh`` (its natural start) and
    ``active`` (nodes). Returns (length or INVALID, number of constants, hash, nonlinear, complexity).
    """
    n_nodes = len(node_op)
    slot = scratch_int[0]
    facts = scratch_int[1]
    uses = scratch_int[2]
    nesting = scratch_int[3]
    hashes = scratch_hash[0]
    sums = scratch_hash[1]
    seen_terms = scratch_hash[2]
    one = n_variables
    zero_hash = np.uint64(0)
    output = n_nodes - 1
    for node in range(n_nodes):
        active[node] = 0
        uses[node] = 0
    active[output] = 1
    for node in range(output, n_inputs - 1, -1):
        if active[node] == 0:
            continue
        if dense_high[node] > 0:
            for source in range(dense_low[node], dense_high[node]):
                active[source] = 1
                uses[source] += 1
        else:
            for c in range(first_connection[node], first_connection[node + 1]):
                source = source_low[c] + choices[c]
                active[source] = 1
                uses[source] += 1
    n_slots = 2 * n_variables + 1
    for i in range(n_variables):
        slot[i] = i
        facts[i] = 0
        nesting[i] = 0
        hashes[i] = _scramble(np.uint64(i + 1))
        sums[i] = zero_hash
    for i in range(n_variables, n_inputs):
        slot[i] = one
        facts[i] = _CONSTANT | _HAS_ONE
        nesting[i] = 0
        hashes[i] = _scramble(np.uint64(900001))
        sums[i] = zero_hash
    length = 0
    n_constants = 0
    complexity = 0
    has_power = False
    for node in range(n_inputs, n_nodes):
        if active[node] == 0:
            continue
        op = node_op[node]
        sums[node] = zero_hash
        if length + 2 * MAX_SOURCES >= SCRATCH or length >= MAX_NODES - 2 or n_constants >= MAX_CONSTANTS - 3:
            return INVALID, 0, zero_hash, False, 0, False
        if op == 0:  # identity: hand the input through
            source = source_low[first_connection[node]] + choices[first_connection[node]]
            slot[node] = slot[source]
            facts[node] = facts[source]
            nesting[node] = nesting[source]
            hashes[node] = hashes[source]
            sums[node] = sums[source]
            if uses[source] == 1 and uses[node] > 1:
                facts[node] &= ~_SCALED
        elif op == 1 or op == 2:
            c = first_connection[node]
            left = source_low[c] + choices[c]
            right = source_low[c + 1] + choices[c + 1]
            if hashes[left] == hashes[right] or (facts[left] & facts[right] & _CONSTANT):
                return INVALID, 0, zero_hash, False, 0, False
            left_constant = -1
            right_constant = -1
            if not (facts[left] & _SCALED) or uses[left] > 1:
                left_constant = n_constants
                weight_ids[n_constants] = c
                fresh[n_constants] = 1.0
                n_constants += 1
            if not (facts[right] & _SCALED) or uses[right] > 1:
                right_constant = n_constants
                weight_ids[n_constants] = c + 1
                fresh[n_constants] = 1.0 if op == 1 else -1.0
                n_constants += 1
            if (
                (facts[left] & _SUM)
                and uses[left] == 1
                and (facts[right] & _SUM)
                and uses[right] == 1
                and (facts[left] & facts[right] & _HAS_ONE)
            ):
                return INVALID, 0, zero_hash, False, 0, False  # two offsets in one sum
            _emit(program, length, 1, slot[left], slot[right], left_constant, right_constant)
            slot[node] = n_slots + length
            length += 1
            complexity += 1
            one_left = (facts[left] & _CONSTANT) or ((facts[left] & _SUM) and (facts[left] & _HAS_ONE))
            one_right = (facts[right] & _CONSTANT) or ((facts[right] & _SUM) and (facts[right] & _HAS_ONE))
            if one_left and one_right and uses[left] == 1 and uses[right] == 1:
                return INVALID, 0, zero_hash, False, 0, False
            facts[node] = _SCALED | _SUM | (_HAS_ONE if (one_left or one_right) else 0)
            nesting[node] = max(nesting[left], nesting[right])
            facts[node] |= (facts[left] | facts[right]) & (_TRIGONOMETRIC | _EXPONENTIAL | _LOGARITHM)
            term_left = sums[left] if (facts[left] & _SUM) and uses[left] == 1 else _scramble(hashes[left])
            term_right = sums[right] if (facts[right] & _SUM) and uses[right] == 1 else _scramble(hashes[right])
            sums[node] = term_left + term_right
            hashes[node] = _scramble(sums[node] + np.uint64(101))
        elif op == 3:
            c = first_connection[node]
            left = source_low[c] + choices[c]
            right = source_low[c + 1] + choices[c + 1]
            if (facts[left] | facts[right]) & _CONSTANT:
                return INVALID, 0, zero_hash, False, 0, False
            _emit(program, length, 3, slot[left], slot[right], -1, -1)
            slot[node] = n_slots + length
            length += 1
            complexity += 1
            facts[node] = ((facts[left] & _SCALED) if uses[left] == 1 else 0) | (
                (facts[right] & _SCALED) if uses[right] == 1 else 0
            )
            facts[node] |= (facts[left] | facts[right]) & (_TRIGONOMETRIC | _EXPONENTIAL | _LOGARITHM)
            nesting[node] = max(nesting[left], nesting[right])
            hashes[node] = _scramble(_scramble(hashes[left]) + _scramble(hashes[right]) + np.uint64(103))
        elif op == 4 or op == 20:
            c = first_connection[node]
            if op == 4:
                left = source_low[c] + choices[c]
                right = source_low[c + 1] + choices[c + 1]
            else:
                left = one
                right = source_low[c] + choices[c]
            if (facts[right] & _CONSTANT) or hashes[left] == hashes[right]:
                return INVALID, 0, zero_hash, False, 0, False
            if facts[left] & _CONSTANT:
                if facts[right] & _POWER:
                    return INVALID, 0, zero_hash, False, 0, False
                _emit(program, length, 20, slot[right], slot[right], -1, -1)
            else:
                _emit(program, length, 4, slot[left], slot[right], -1, -1)
            slot[node] = n_slots + length
            length += 1
            complexity += 1
            facts[node] = ((facts[left] & _SCALED) if uses[left] == 1 else 0) | (
                (facts[right] & _SCALED) if uses[right] == 1 else 0
            )
            if facts[left] & _CONSTANT:
                facts[node] = _POWER | ((facts[right] & _SCALED) if uses[right] == 1 else 0)
            facts[node] |= (facts[left] | facts[right]) & (_TRIGONOMETRIC | _EXPONENTIAL | _LOGARITHM)
            nesting[node] = max(nesting[left], nesting[right])
            hashes[node] = _scramble(_scramble(hashes[left]) - _scramble(hashes[right] + np.uint64(7)) + np.uint64(104))
        elif dense_high[node] > 0:
            low, high = dense_low[node], dense_high[node]
            terms = 0
            accumulator = -1
            first_constant = -1
            total = zero_hash
            fact = 0
            depth = 0
            has_one = False
            if op == 23:  # Σ
                for source in range(low, high):
                    repeated = False
                    for t in range(terms):
                        if seen_terms[t] == hashes[source]:
                            repeated = True
                    is_one = (facts[source] & _CONSTANT) or (facts[source] & _SUM and facts[source] & _HAS_ONE)
                    if repeated or (is_one and has_one) or n_constants >= MAX_CONSTANTS - 3:
                        continue
                    has_one = has_one or is_one != 0
                    seen_terms[terms] = hashes[source]
                    terms += 1
                    constant = -1
                    if not (facts[source] & _SCALED) or uses[source] > 1:
                        constant = n_constants
                        weight_ids[n_constants] = first_dense[node] + source - low
                        fresh[n_constants] = 1.0
                        n_constants += 1
                    fact |= facts[source] & (_TRIGONOMETRIC | _EXPONENTIAL | _LOGARITHM)
                    depth = max(depth, nesting[source])
                    total += sums[source] if (facts[source] & _SUM) and uses[source] == 1 else _scramble(hashes[source])
                    if terms == 1:
                        accumulator = slot[source]
                        first_constant = constant
                    else:
                        _emit(program, length, 1, accumulator, slot[source], first_constant, constant)
                        first_constant = -1
                        accumulator = n_slots + length
                        length += 1
                        complexity += 1
                if terms < 2:
                    return INVALID, 0, zero_hash, False, 0, False
                slot[node] = accumulator
                facts[node] = _SCALED | _SUM | fact | (_HAS_ONE if has_one else 0)
                nesting[node] = depth
                sums[node] = total
                hashes[node] = _scramble(total + np.uint64(101))
            else:  # Π: over variables exp of a weighted sum of logarithms, above them fitted powers
                for source in range(low, high):
                    if facts[source] & _CONSTANT:
                        continue
                    if n_constants >= MAX_CONSTANTS - 3 or length >= MAX_NODES - 4:
                        return INVALID, 0, zero_hash, False, 0, False
                    repeated = False
                    for t in range(terms):
                        if seen_terms[t] == hashes[source]:
                            repeated = True
                    if repeated or (source < n_variables and positive[source] == 0):
                        continue
                    seen_terms[terms] = hashes[source]
                    terms += 1
                    constant = n_constants
                    weight_ids[n_constants] = first_dense[node] + source - low
                    fresh[n_constants] = 0.0
                    n_constants += 1
                    total += _scramble(hashes[source])
                    fact |= facts[source] & (_TRIGONOMETRIC | _EXPONENTIAL | _LOGARITHM)
                    depth = max(depth, nesting[source])
                    if source < n_variables:
                        if terms == 1:
                            accumulator = n_variables + 1 + source
                            first_constant = constant
                        else:
                            _emit(program, length, 1, accumulator, n_variables + 1 + source, first_constant, constant)
                            first_constant = -1
                            accumulator = n_slots + length
                            length += 1
                    else:
                        _emit(program, length, POWER_FITTED, slot[source], 0, -1, constant)
                        power = n_slots + length
                        length += 1
                        if terms == 1:
                            accumulator = power
                        else:
                            _emit(program, length, 3, accumulator, power, -1, -1)
                            accumulator = n_slots + length
                            length += 1
                    complexity += 2
                has_power = True
                if terms < 1:
                    return INVALID, 0, zero_hash, False, 0, False
                if low < n_variables:
                    _emit(program, length, 13, accumulator, accumulator, first_constant, -1)
                    accumulator = n_slots + length
                    length += 1
                slot[node] = accumulator
                facts[node] = fact
                nesting[node] = depth
                hashes[node] = _scramble(total + np.uint64(124) + np.uint64(1000003) * np.uint64(node))
        else:  # functions of one input
            c = first_connection[node]
            left = source_low[c] + choices[c]
            fact = facts[left]
            if fact & _CONSTANT:
                return INVALID, 0, zero_hash, False, 0, False
            power = 7 <= op <= 12 or op == 19
            trigonometric = op == 5 or op == 6 or 15 <= op <= 18
            if power and (fact & _POWER):
                return INVALID, 0, zero_hash, False, 0, False
            depth = nesting[left]
            if trigonometric and (fact & _TRIGONOMETRIC):
                depth += 1
            if op == 13 and (fact & _EXPONENTIAL):
                depth += 1
            if op == 14 and (fact & _LOGARITHM):
                depth += 1
            if depth > max_nesting:
                return INVALID, 0, zero_hash, False, 0, False
            constant = -1
            weighted = trigonometric or op == 13 or op >= 1000
            if weighted and (not (fact & _SCALED) or uses[left] > 1):
                constant = n_constants
                weight_ids[n_constants] = c
                fresh[n_constants] = 1.0
                n_constants += 1
            _emit(program, length, op, slot[left], slot[left], constant, -1)
            slot[node] = n_slots + length
            length += 1
            complexity += 2
            kept = fact & (_TRIGONOMETRIC | _EXPONENTIAL | _LOGARITHM)
            if power:
                kept |= _POWER | ((fact & _SCALED) if uses[left] == 1 else 0)
            if trigonometric:
                kept |= _TRIGONOMETRIC
            if op == 13:
                kept |= _EXPONENTIAL
            if op == 14:
                kept |= _LOGARITHM
            facts[node] = kept
            nesting[node] = depth
            hashes[node] = _scramble(hashes[left] + np.uint64(1000) * np.uint64(op) + np.uint64(17))
    fact = facts[output]
    if fact & _CONSTANT:
        return INVALID, 0, zero_hash, False, 0, False
    scale = -1
    if not (fact & _SCALED):
        scale = n_constants
        weight_ids[n_constants] = n_weights + OUTPUT_SCALE
        fresh[n_constants] = 1.0
        n_constants += 1
    if with_offset and not ((fact & _SUM) and (fact & _HAS_ONE)):
        weight_ids[n_constants] = n_weights + OUTPUT_OFFSET
        fresh[n_constants] = 0.0
        _emit(program, length, 1, slot[output], one, scale, n_constants)
        n_constants += 1
        length += 1
    elif scale >= 0:
        _emit(program, length, 0, slot[output], slot[output], scale, -1)
        length += 1
    if length == 0:
        return INVALID, 0, zero_hash, False, 0, False
    # Constants met on the way down through sums are linear; any other one makes the fit depend on its start.
    linear = 0
    top = scratch_int[0]
    top[0] = length - 1
    pending = 1
    while pending > 0:
        pending -= 1
        k = top[pending]
        if program[0, k] > 1:
            continue
        for side in range(2 if program[0, k] == 1 else 1):
            if program[3 + side, k] >= 0:
                linear += 1
            below = program[1 + side, k] - n_slots
            if below >= 0 and program[3 + side, k] < 0 and program[0, below] <= 1:
                top[pending] = below
                pending += 1
    root = sums[output] if fact & _SUM else _scramble(hashes[output])
    return (
        length,
        n_constants,
        _scramble(root + np.uint64(1)),
        linear < n_constants,
        complexity + n_constants,
        has_power,
    )


@njit(**_OPTIONS)
def _count_tries(table, counts, key, add):
    """How often this hash was fitted so far; ``add`` is added to its count. The table is open addressing."""
    mask = np.uint64(len(table) - 1)
    key = key | np.uint64(1)
    place = _scramble(key) & mask
    for _ in range(64):
        if table[place] == key:
            before = counts[place]
            counts[place] = min(before + add, 100)
            return before
        if table[place] == 0:
            if add > 0:
                table[place] = key
                counts[place] = add
            return 0
        place = (place + np.uint64(1)) & mask
    return 0


@njit(**_OPTIONS)
def count_tries(table, counts, keys):
    """Add one try for each of ``keys``, in their order."""
    for k in range(len(keys)):
        _count_tries(table, counts, keys[k], 1)


@njit(**_OPTIONS)
def _random_active_connection(state, active, first_connection, n_inputs, n_nodes, n_active):
    """A connection of an active node, all alike; and the node it feeds."""
    skip = int(_uniform(state) * n_active)
    for node in range(n_inputs, n_nodes):
        if active[node]:
            count = first_connection[node + 1] - first_connection[node]
            if skip < count:
                return first_connection[node] + skip, node
            skip -= count
    return -1, -1


@njit(**_OPTIONS)
def _insert_node(
    state, choices, active, n_active, first_connection, source_low, n_choices, cumulative, n_inputs, n_nodes
):
    """Put an idle node between a node and one of its sources: a -> c becomes a -> idle -> c."""
    for _ in range(8):
        c, node = _random_active_connection(state, active, first_connection, n_inputs, n_nodes, n_active)
        source = source_low[c] + choices[c]
        idle = source_low[c] + int(_uniform(state) * n_choices[c])
        if idle < n_inputs or active[idle] or first_connection[idle + 1] == first_connection[idle]:
            continue
        first, last = first_connection[idle], first_connection[idle + 1]
        takes = first + int(_uniform(state) * (last - first))
        if source < source_low[takes] or source >= source_low[takes] + n_choices[takes]:
            continue
        for other in range(first, last):
            choices[other] = _search_cumulative(cumulative[other], n_choices[other], _uniform(state))
        choices[takes] = source - source_low[takes]
        choices[c] = idle - source_low[c]
        return True
    return False


@njit(**_OPTIONS)
def _bypass_node(state, choices, active, n_active, first_connection, source_low, n_choices, n_inputs, n_nodes):
    """Take a node out: the connection that read it reads one of its inputs instead."""
    for _ in range(8):
        c, node = _random_active_connection(state, active, first_connection, n_inputs, n_nodes, n_active)
        source = source_low[c] + choices[c]
        if source < n_inputs or first_connection[source + 1] == first_connection[source]:
            continue
        first, last = first_connection[source], first_connection[source + 1]
        takes = first + int(_uniform(state) * (last - first))
        below = source_low[takes] + choices[takes]
        if below < source_low[c] or below >= source_low[c] + n_choices[c]:
            continue
        choices[c] = below - source_low[c]
        return True
    return False


@njit(**_OPTIONS)
def _exchange_node(
    state, choices, active, n_active, node_op, first_connection, source_low, n_choices, cumulative, n_inputs, n_nodes
):
    """Let an idle node of another function take over a node's inputs and readers."""
    for _ in range(8):
        c, node = _random_active_connection(state, active, first_connection, n_inputs, n_nodes, n_active)
        if node >= n_nodes - 1:
            continue
        idle = n_inputs + int(_uniform(state) * (n_nodes - 1 - n_inputs))
        n_mine = first_connection[node + 1] - first_connection[node]
        n_idle = first_connection[idle + 1] - first_connection[idle]
        if active[idle] or n_idle == 0 or node_op[idle] == node_op[node]:
            continue
        fits = True
        for j in range(n_idle):
            mine, other = first_connection[node] + min(j, n_mine - 1), first_connection[idle] + j
            source = source_low[mine] + choices[mine]
            if j < n_mine and (source < source_low[other] or source >= source_low[other] + n_choices[other]):
                fits = False
        for reader in range(len(source_low)):
            if source_low[reader] + choices[reader] == node and (
                idle < source_low[reader] or idle >= source_low[reader] + n_choices[reader]
            ):
                fits = False
        if not fits:
            continue
        for j in range(n_idle):
            other = first_connection[idle] + j
            if j < n_mine:
                mine = first_connection[node] + j
                choices[other] = source_low[mine] + choices[mine] - source_low[other]
            else:
                choices[other] = _search_cumulative(cumulative[other], n_choices[other], _uniform(state))
        for reader in range(len(source_low)):
            own = first_connection[idle] <= reader < first_connection[idle + 1]  # a node never reads itself
            if not own and source_low[reader] + choices[reader] == node:
                choices[reader] = idle - source_low[reader]
        return True
    return False


@njit(**_OPTIONS)
def draw_candidates(
    n_candidates,
    state,
    node_op,
    first_connection,
    source_low,
    n_choices,
    dense_low,
    dense_high,
    first_dense,
    n_inputs,
    n_variables,
    positive,
    n_weights,
    with_offset,
    max_nesting,
    cumulative,
    elite_choices,
    elite_constants,
    elite_cumulative,
    n_elites,
    resample_fraction,
    mean_changes,
    insert_share,
    bypass_share,
    exchange_share,
    fresh_share,
    cross_share,
    inherit_share,
    jitter,
    max_tries,
    max_complexity,
    salt,
    known,
    known_counts,
    table,
    counts,
    choices,
    programs,
    lengths,
    n_constants,
    weight_ids,
    start,
    hashes,
    complexities,
):
    """Draw up to ``n_candidates`` new structures and compile them. Returns how many were drawn.

    What was tried stands in two tables: ``known``, which is only read, and ``table``, into which the drawn ones go.

    ``cumulative`` [C, M] holds cumulative choice probabilities of the structure parameters. A candidate is wholly new
    with probability ``fresh_share`` (or while there are no elites), else an elite's copy with re-sampled connections,
    in ``cross_share`` of cases after taking some nodes' wiring from a second elite.
    """
    n_connections = len(source_low)
    n_nodes = len(node_op)
    scratch_int = np.zeros((4, SCRATCH), np.int64)
    scratch_hash = np.zeros((3, SCRATCH), np.uint64)
    active = np.zeros(n_nodes, np.int64)
    fresh = np.zeros(MAX_CONSTANTS)
    drawn = 0
    for _ in range(n_candidates * 12):
        if drawn >= n_candidates:
            break
        mine = choices[drawn]
        parent = -1
        if n_elites > 0 and _uniform(state) >= fresh_share:
            parent = _search_cumulative(elite_cumulative, n_elites, _uniform(state))
            for c in range(n_connections):
                mine[c] = elite_choices[parent, c]
            if n_elites > 1 and _uniform(state) < cross_share:
                other = _search_cumulative(elite_cumulative, n_elites, _uniform(state))
                for node in range(n_inputs, n_nodes - 1):
                    if _uniform(state) < 0.3:
                        for c in range(first_connection[node], first_connection[node + 1]):
                            mine[c] = elite_choices[other, c]
            _mark_active(mine, node_op, first_connection, source_low, dense_low, dense_high, n_inputs, active)
            n_active = np.int64(0)
            for node in range(n_inputs, n_nodes):
                if active[node]:
                    n_active += first_connection[node + 1] - first_connection[node]
            kind = _uniform(state)
            changed = False
            if n_active > 0:
                if kind < insert_share:
                    changed = _insert_node(
                        state,
                        mine,
                        active,
                        n_active,
                        first_connection,
                        source_low,
                        n_choices,
                        cumulative,
                        n_inputs,
                        n_nodes,
                    )
                elif kind < insert_share + bypass_share:
                    changed = _bypass_node(
                        state, mine, active, n_active, first_connection, source_low, n_choices, n_inputs, n_nodes
                    )
                elif kind < insert_share + bypass_share + exchange_share:
                    changed = _exchange_node(
                        state,
                        mine,
                        active,
                        n_active,
                        node_op,
                        first_connection,
                        source_low,
                        n_choices,
                        cumulative,
                        n_inputs,
                        n_nodes,
                    )
            if not changed:
                # an exponential number of re-sampled connections, one at least on average; idle ones drift freely
                changes = 1.0 - mean_changes * np.log(_uniform(state) + 1e-300)
                rate = min(resample_fraction, changes / max(n_active, 1)) if mean_changes > 0 else resample_fraction
                for node in range(n_inputs, n_nodes):
                    chance = rate if active[node] else 0.5
                    for c in range(first_connection[node], first_connection[node + 1]):
                        if _uniform(state) < chance:
                            mine[c] = _search_cumulative(cumulative[c], n_choices[c], _uniform(state))
        else:
            for c in range(n_connections):
                mine[c] = _search_cumulative(cumulative[c], n_choices[c], _uniform(state))
        length, count, key, nonlinear, complexity, has_power = compile_structure(
            mine,
            node_op,
            first_connection,
            source_low,
            dense_low,
            dense_high,
            first_dense,
            n_inputs,
            n_variables,
            positive,
            n_weights,
            with_offset,
            max_nesting,
            programs[drawn],
            weight_ids[drawn],
            fresh,
            active,
            scratch_int,
            scratch_hash,
        )
        if length == INVALID or complexity > max_complexity:
            continue
        key = key ^ salt
        tries = _count_tries(known, known_counts, key, 0) + _count_tries(table, counts, key, 0)
        if tries >= (max_tries if nonlinear else 1) * (8 if has_power else 1):
            continue
        _count_tries(table, counts, key, 1)
        # The first two starts are the plain ones, natural and inherited in either order; later ones are jittered.
        inherits = parent >= 0 and (_uniform(state) < inherit_share) == (tries % 2 == 0)
        jittered = tries >= 2
        for p in range(count):
            value = fresh[p]
            if value == 0.0 and weight_ids[drawn, p] < n_weights and not inherits:
                # an exponent of Π: mostly absent, else a small half-integer
                if _uniform(state) < 0.5:
                    value = (1.0 + np.floor(_uniform(state) * 4.0)) * (0.5 if _uniform(state) < 0.5 else -0.5)
            if inherits:
                old = elite_constants[parent, weight_ids[drawn, p]]
                if np.isfinite(old):
                    value = old
            if jittered:
                value *= 1.0 + jitter * _normal(state)
            start[drawn, p] = value
        lengths[drawn] = length
        n_constants[drawn] = count
        hashes[drawn] = key
        complexities[drawn] = complexity
        drawn += 1
    return drawn


@njit(**_OPTIONS)
def _mark_active(choices, node_op, first_connection, source_low, dense_low, dense_high, n_inputs, active):
    n_nodes = len(node_op)
    for node in range(n_nodes):
        active[node] = 0
    active[n_nodes - 1] = 1
    for node in range(n_nodes - 1, n_inputs - 1, -1):
        if active[node] == 0:
            continue
        if dense_high[node] > 0:
            for source in range(dense_low[node], dense_high[node]):
                active[source] = 1
        else:
            for c in range(first_connection[node], first_connection[node + 1]):
                active[source_low[c] + choices[c]] = 1


@njit(**_OPTIONS)
def count_choices(choices, weights, node_op, first_connection, source_low, dense_low, dense_high, n_inputs, counts):
    """Rank-weighted frequencies of the active choices of the elites, added to ``counts`` [C, M]."""
    active = np.zeros(len(node_op), np.int64)
    for e in range(len(choices)):
        _mark_active(choices[e], node_op, first_connection, source_low, dense_low, dense_high, n_inputs, active)
        for node in range(n_inputs, len(node_op)):
            if active[node]:
                for c in range(first_connection[node], first_connection[node + 1]):
                    counts[c, choices[e, c]] += weights[e]


def compile_once(
    choices,
    node_op,
    first_connection,
    source_low,
    n_choices,
    dense_low,
    dense_high,
    first_dense,
    n_inputs,
    n_variables,
    positive,
    n_weights,
    with_offset,
    max_nesting,
):
    """Program [5, nodes], its length, the weight each constant is, and their number, of one structure."""
    program = np.zeros((5, MAX_NODES), np.int16)
    weight_ids = np.zeros(MAX_CONSTANTS, np.int64)
    length, count, _, _, _, _ = compile_structure(
        choices,
        node_op,
        first_connection,
        source_low,
        dense_low,
        dense_high,
        first_dense,
        n_inputs,
        n_variables,
        positive,
        n_weights,
        with_offset,
        max_nesting,
        program,
        weight_ids,
        np.zeros(MAX_CONSTANTS),
        np.zeros(len(node_op), np.int64),
        np.zeros((4, SCRATCH), np.int64),
        np.zeros((3, SCRATCH), np.uint64),
    )
    return program, length, weight_ids, count
