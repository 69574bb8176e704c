"""The CUDA source of one network: its relaxed forward pass with gradients, and the hash of its expressions.

Written out node by node, so that all of a row's values are registers. The same mathematics as `relaxed.forward` and
`Architecture.fingerprints`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from gmeql.formula.domains import QUOTIENT_LIMIT, TINY
from gmeql.formula.operators import WHOLE_POWERS, get_operator
from gmeql.network.architecture import HASH_KEYS, Architecture, mixed


class Form(NamedTuple):
    """An operator's protected form over inputs a and b: what sets its value v, and its slope by each input.

    What the value takes and a slope needs again may be left in z.
    """

    value: str
    slopes: tuple[str, ...]


FORMS = {
    "id": Form("v = a;", ("1.0f",)),
    "add": Form("v = a + b;", ("1.0f", "1.0f")),
    "sub": Form("v = a - b;", ("1.0f", "-1.0f")),
    "mul": Form("v = a * b;", ("b", "a")),
    "div": Form("v = quotient(a, b, z);", ("z", "-v * z")),
    "sin": Form("sine_and_cosine(a, v, z);", ("z",)),
    "cos": Form("sine_and_cosine(a, z, v);", ("-z",)),
    "sqrt": Form(f"v = sqrtf(fmaxf(fabsf(a), {TINY}f));", (f"(fabsf(a) > {TINY}f ? 0.5f * sign_of(a) / v : 0.0f)",)),
    **{
        name: Form("v = " + " * ".join("a" * power) + ";", (f"{power}.0f * " + " * ".join("a" * (power - 1)),))
        for power, name in enumerate(WHOLE_POWERS, start=2)
    },
}
"""Operators that networks may have here, beside the dense Σ."""
QUOTIENT = f"""
// a / b, and what 1 / b is where slopes count
DEVICE float quotient(float a, float b, float& inverse) {{
    const bool divides = fabsf(b) > {TINY}f && fabsf(a) <= {QUOTIENT_LIMIT}f * fabsf(b);
    inverse = divides ? 1.0f / b : 0.0f;
    if (divides) return a * inverse;
    return fabsf(b) > {TINY}f ? {QUOTIENT_LIMIT}f * sign_of(a) * sign_of(b) : 0.0f;
}}
"""
ROWS_PER_LANE = 2
"""Rows that a lane takes at a time: they share what is read of the instance."""


ROWS = """
struct Rows {  // `count` rows of a table from `first` on, round and round
    const float *columns, *targets;
    int total, first, count;
};
"""


def lacks(architecture: Architecture) -> tuple[str, ...]:
    """Operators of a network that have no form here."""
    return tuple(sorted({name for name in architecture.node_operator if name not in FORMS and name != "sum"}))


def network_source(architecture: Architecture) -> str:
    """`choices_of`, `evaluate_instance` and `fingerprint` of a network."""
    counts = ", ".join(map(str, architecture.n_choices))
    choices = f"TABLE short counts[] = {{{counts}}};\nDEVICE int choices_of(int c) {{ return counts[c]; }}\n"
    return "\n".join([choices, ROWS, QUOTIENT, _evaluation(architecture), _hashing(architecture)])


def _evaluation(architecture: Architecture) -> str:
    """The loss of an instance over all rows, its lanes' share each; with SLOPES its gradients by selection and weight."""
    width, connections = architecture.max_choices, architecture.n_connections
    dense = range(connections, connections + architecture.n_dense)
    places = [c * width + l for c in range(connections) for l in range(int(architecture.n_choices[c]))]
    forward = [f"const float v{i}_{{r}} = columns[{i} * rows + n{{r}}];" for i in range(architecture.n_variables)]
    forward += [
        f"const float v{architecture.n_variables + i}_{{r}} = {value}f;"
        for i, value in enumerate(architecture.constants)
    ]
    backward: list[str] = []
    for node in range(architecture.n_inputs, architecture.n_nodes):
        ahead, back = _node(architecture, node, places)
        forward += ahead
        backward[:0] = back
    outputs = range(architecture.layer_slices[-1].start, architecture.n_nodes)
    forward += [
        f"const float e{i}_{{r}} = v{node}_{{r}} - targets[{i} * rows + n{{r}}];" for i, node in enumerate(outputs)
    ]
    forward += ["loss += counts{r} * (" + " + ".join(f"fabsf(e{i}_{{r}})" for i in range(len(outputs))) + ");"]
    hidden = range(architecture.n_inputs, architecture.n_nodes)
    starts = [
        f"float d{node}_{{r}} = {f'counts{{r}} * sign_of(e{node - outputs.start}_{{r}})' if node in outputs else '0.0f'};"
        for node in hidden
    ]
    rows = [
        f"const int at{r} = i + {r} * LANES; const float counts{r} = at{r} < table.count ? 1.0f : 0.0f; "
        f"const int m{r} = table.first + (at{r} < table.count ? at{r} : 0), n{r} = m{r} < rows ? m{r} : m{r} - rows;"
        for r in range(ROWS_PER_LANE)
    ]
    sums = len(places) + len(dense)
    totals = [
        f"EACH_TOTAL(i, total, g, {first}) {{ if (i < {len(places)}) by_selection[places[i]] = total * share; "
        f"else if (i < {sums}) by_weight[{connections - len(places)} + i] = total * share; "
        f"else if (i == {sums}) lost = total; }}"
        for first in range(0, sums + 1, 32)
    ]
    aligned = math.gcd(16, 4 * connections * width)
    return f"""
TABLE short places[] = {{{", ".join(map(str, places))}}};  // of the sums over rows that are slopes by selections

template <bool SLOPES>
DEVICE float evaluate_instance(const float* selection, const float* weight, const Rows& table,
                               float* by_selection, float* by_weight) {{
    const float *columns = table.columns, *targets = table.targets;
    const int rows = table.total;
    float* factor = (float*)__builtin_assume_aligned(by_selection, {aligned});  // until slopes take their place
    for (int i = LANE; i < {connections * width}; i += LANES) factor[i] = selection[i] * weight[i / {width}];
    MEET_LANES;
    float g[{-(-(sums + 1) // 32) * 32}];
    UNROLLED
    for (int i = 0; i < {-(-(sums + 1) // 32) * 32}; ++i) g[i] = 0.0f;
    float loss = 0.0f;
    for (int i = LANE; i < table.count; i += {ROWS_PER_LANE} * LANES) {{
        {_lines(rows, 8)}
        ANEW;
        {_lines(_rowwise(forward), 8)}
        if (SLOPES) {{
            ANEW;
            {_lines(_rowwise(starts + backward), 12)}
        }}
    }}
    const float share = 1.0f / ({architecture.n_outputs}.0f * (float)table.count);
    if (!SLOPES) return total_of_lanes(loss) * share;
    MEET_LANES;
    g[{sums}] = loss;
    float lost = 0.0f;
    {_lines(totals, 4)}
    lost = of_lane(lost, {sums} % 32);
    MEET_LANES;
    for (int c = LANE; c < {connections}; c += LANES) {{
        float along = 0.0f;
        for (int l = 0; l < choices_of(c); ++l) {{
            along += by_selection[c * {width} + l] * selection[c * {width} + l];
            by_selection[c * {width} + l] *= weight[c];
        }}
        by_weight[c] = along;
    }}
    return lost * share;
}}
"""


def _rowwise(lines: Sequence[str]) -> list[str]:
    """Lines that hold for each of a lane's rows, and those that hold for all."""
    return [line.replace("{r}", str(r)) for line in lines for r in range(ROWS_PER_LANE if "{r}" in line else 1)]


def _node(architecture: Architecture, node: int, places: Sequence[int]) -> tuple[list[str], list[str]]:
    """One node's part of the forward pass, and of the backward pass."""
    operator = get_operator(architecture.node_operator[node])
    if operator.is_dense:
        sources, weights = architecture.dense_of(node)
        shift = len(places) - architecture.n_connections
        terms = [(int(s), f"w{w}", f"g[{w + shift}]") for s, w in zip(sources, weights, strict=True)]
        loads = [f"const float w{w} = weight[{w}];" for w in weights]
        forward = [*loads, f"const float v{node}_{{r}} = {_dot(terms)};"]
        return forward, loads + _spread(architecture, f"d{node}_{{r}}", terms)
    forward, backward, names = [], [], []
    connections = architecture.connections_of(node)
    for letter, c in zip("ab", connections, strict=False):
        low, first = int(architecture.source_low[c]), int(c) * architecture.max_choices
        chosen = range(int(architecture.n_choices[c]))
        terms = [(low + l, f"k{first + l}", f"g[{places.index(first + l)}]") for l in chosen]
        forward += [f"const float k{first + l} = factor[{first + l}];" for l in chosen]
        forward.append(f"const float i{c}_{{r}} = {_dot(terms)};")
        names.append(f"const float {letter} = i{c}_{{r}};")
        backward += [
            f"const float k{first + l} = factor[{first + l}];" for l in chosen if low + l >= architecture.n_inputs
        ]
        backward += [
            f"const float s{c}_{{r}} = d{node}_{{r}} * o{c}_{{r}};",
            *_spread(architecture, f"s{c}_{{r}}", terms),
        ]
    form = FORMS[operator.name]
    inputs = " ".join(names)
    forward += [
        f"float v{node}_{{r}}, z{node}_{{r}};",
        f"{{ {inputs} float v, z = 0.0f; {form.value} v{node}_{{r}} = v; z{node}_{{r}} = z; }}",
    ]
    slopes = " ".join(f"o{c}_{{r}} = {slope};" for c, slope in zip(connections, form.slopes, strict=True))
    ahead = [f"float o{c}_{{r}};" for c in connections]
    ahead += [f"{{ {inputs} const float v = v{node}_{{r}}, z = z{node}_{{r}}; {slopes} }}"]
    return forward, ahead + backward


def _dot(terms: Sequence[tuple[int, str, str]]) -> str:
    return " + ".join(f"{factor} * v{source}_{{r}}" for source, factor, _ in terms)


def _spread(architecture: Architecture, slope: str, terms: Sequence[tuple[int, str, str]]) -> list[str]:
    """What a slope gives to the factors of a weighted sum, and to the nodes below."""
    lines = [f"{total} += {slope} * v{source}_{{r}};" for source, _, total in terms]
    return lines + [
        f"d{source}_{{r}} += {slope} * {factor};" for source, factor, _ in terms if source >= architecture.n_inputs
    ]


def _hashing(architecture: Architecture) -> str:
    """One half of the hash of the expression that choices spell."""

    def of(value: int) -> str:
        return "(half ? {1}u : {0}u)".format(*(mixed(value, key) for key in HASH_KEYS))

    lines = [f"h[{node}] = {of(node + 1)};" for node in range(architecture.n_inputs)]
    for node in range(architecture.n_inputs, architecture.n_nodes):
        operator = get_operator(architecture.node_operator[node])
        if operator.is_dense:
            inputs = [f"h[{source}]" for source in architecture.dense_of(node)[0]]
        else:
            inputs = [f"h[{architecture.source_low[c]} + choice[{c}]]" for c in architecture.connections_of(node)]
        if operator.name == "id":
            lines.append(f"h[{node}] = {inputs[0]};")
            continue
        lines.append(f"total = {of(1000 + operator.opcode)};")
        any_order = operator.commutative or operator.is_dense
        lines += [f"total {'+= mixed(' + one if any_order else '= mixed(total + ' + one}, key);" for one in inputs]
        lines.append(f"h[{node}] = mixed(total, key);")
    lines.append("total = 0u;")
    outputs = range(architecture.layer_slices[-1].start, architecture.n_nodes)
    lines += [f"total = mixed(total + h[{node}], key);" for node in outputs]
    return f"""
DEVICE u32 mixed(u32 value, u32 key) {{
    value ^= key;
    value = (value ^ (value >> 16)) * 0x7FEB352Du;
    value = (value ^ (value >> 15)) * 0x846CA68Bu;
    return value ^ (value >> 16);
}}

DEVICE u32 fingerprint(const int* choice, int half) {{
    const u32 key = half ? {HASH_KEYS[1]}u : {HASH_KEYS[0]}u;
    u32 h[{architecture.n_nodes}], total;
    {_lines(lines, 4)}
    return total;
}}
"""


def _lines(lines: Sequence[str], indent: int) -> str:
    return ("\n" + " " * indent).join(lines)
