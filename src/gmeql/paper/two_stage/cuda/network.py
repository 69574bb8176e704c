"""The CUDA source of one network: its relaxed forward pass with gradients, and the hash of its expressions.

Written out node by node, so that all of a row's values are registers. The same mathematics as `relaxed.forward` and
`Architecture.fingerprints`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gmeql.formula.domains import QUOTIENT_LIMIT, TINY
from gmeql.formula.operators import WHOLE_POWERS, get_operator
from gmeql.network.architecture import HASH_KEYS, Architecture, mixed


class Form(NamedTuple):
    """An operator's protected form: its value and its slope by each input, over inputs a and b and the value v."""

    value: str
    slopes: tuple[str, ...]


FORMS = {
    "id": Form("a", ("1.0f",)),
    "add": Form("a + b", ("1.0f", "1.0f")),
    "sub": Form("a - b", ("1.0f", "-1.0f")),
    "mul": Form("a * b", ("b", "a")),
    "div": Form("quotient(a, b)", ("(divides(a, b) ? 1.0f / b : 0.0f)", "(divides(a, b) ? -v / b : 0.0f)")),
    "sin": Form("sinf(a)", ("cosf(a)",)),
    "cos": Form("cosf(a)", ("-sinf(a)",)),
    "sqrt": Form(f"sqrtf(fmaxf(fabsf(a), {TINY}f))", (f"(fabsf(a) > {TINY}f ? 0.5f * sign_of(a) / v : 0.0f)",)),
    **{
        name: Form(" * ".join("a" * power), (f"{power}.0f * " + " * ".join("a" * (power - 1)),))
        for power, name in enumerate(WHOLE_POWERS, start=2)
    },
}
"""Operators that networks may have here, beside the dense Σ."""
QUOTIENT = f"""
DEVICE bool divides(float a, float b) {{ return fabsf(b) > {TINY}f && fabsf(a) <= {QUOTIENT_LIMIT}f * fabsf(b); }}
DEVICE float quotient(float a, float b) {{
    if (divides(a, b)) return a / b;
    return fabsf(b) > {TINY}f ? {QUOTIENT_LIMIT}f * sign_of(a) * sign_of(b) : 0.0f;
}}
"""


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
    choices = (
        f"DEVICE int choices_of(int c) {{\n    constexpr int counts[] = {{{counts}}};\n    return counts[c];\n}}\n"
    )
    return "\n".join([choices, ROWS, QUOTIENT, _evaluation(architecture), _hashing(architecture)])


def _evaluation(architecture: Architecture) -> str:
    """The loss of an instance over all rows, its lanes' share each; with SLOPES its gradients by selection and weight."""
    width, connections = architecture.max_choices, architecture.n_connections
    forward: list[str] = [f"const float v{i} = columns[{i} * rows + n];" for i in range(architecture.n_variables)]
    forward += [
        f"const float v{architecture.n_variables + i} = {value}f;" for i, value in enumerate(architecture.constants)
    ]
    backward: list[str] = []
    for node in range(architecture.n_inputs, architecture.n_nodes):
        ahead, back = _node(architecture, node)
        forward += ahead
        backward[:0] = back
    outputs = range(architecture.layer_slices[-1].start, architecture.n_nodes)
    forward += [f"const float e{i} = v{node} - targets[{i} * rows + n];" for i, node in enumerate(outputs)]
    forward += ["loss += " + " + ".join(f"fabsf(e{i})" for i in range(len(outputs))) + ";"]
    hidden = range(architecture.n_inputs, architecture.n_nodes)
    starts = [
        f"float d{node} = {f'sign_of(e{node - outputs.start})' if node in outputs else '0.0f'};" for node in hidden
    ]
    return f"""
template <bool SLOPES>
DEVICE float evaluate_instance(const float* selection, const float* weight, const Rows& table,
                               float* by_selection, float* by_weight) {{
    const float *columns = table.columns, *targets = table.targets;
    const int rows = table.total;
    float k[{connections * width}], g[{connections * width}], h[{max(architecture.n_dense, 1)}], loss = 0.0f;
    UNROLLED
    for (int i = 0; i < {connections * width}; ++i) k[i] = selection[i] * weight[i / {width}], g[i] = 0.0f;
    UNROLLED
    for (int i = 0; i < {max(architecture.n_dense, 1)}; ++i) h[i] = 0.0f;
    for (int i = LANE; i < table.count; i += LANES) {{
        const int n = table.first + i < rows ? table.first + i : table.first + i - rows;
        {_lines(forward, 8)}
        if (SLOPES) {{
            {_lines(starts + backward, 12)}
        }}
    }}
    const float share = 1.0f / ({architecture.n_outputs}.0f * (float)table.count);
    if (SLOPES) {{
        UNROLLED
        for (int c = 0; c < {connections}; ++c) {{
            float along = 0.0f;
            UNROLLED
            for (int l = 0; l < {width}; ++l) {{
                const float slope = l < choices_of(c) ? total_of_lanes(g[c * {width} + l]) * share : 0.0f;
                along += slope * selection[c * {width} + l];
                if (LANE == 0) by_selection[c * {width} + l] = slope * weight[c];
            }}
            if (LANE == 0) by_weight[c] = along;
        }}
        UNROLLED
        for (int i = 0; i < {architecture.n_dense}; ++i) {{
            const float slope = total_of_lanes(h[i]) * share;
            if (LANE == 0) by_weight[{connections} + i] = slope;
        }}
    }}
    return total_of_lanes(loss) * share;
}}
"""


def _node(architecture: Architecture, node: int) -> tuple[list[str], list[str]]:
    """One node's part of the forward pass, and of the backward pass."""
    operator = get_operator(architecture.node_operator[node])
    if operator.is_dense:
        sources, weights = architecture.dense_of(node)
        first = architecture.n_connections
        terms = [(int(s), f"weight[{w}]", f"h[{w - first}]") for s, w in zip(sources, weights, strict=True)]
        return [f"const float v{node} = {_dot(terms)};"], _spread(architecture, f"d{node}", terms)
    forward, backward, names = [], [], []
    connections = architecture.connections_of(node)
    for letter, c in zip("ab", connections, strict=False):
        low, first = int(architecture.source_low[c]), int(c) * architecture.max_choices
        terms = [(low + l, f"k[{first + l}]", f"g[{first + l}]") for l in range(int(architecture.n_choices[c]))]
        forward.append(f"const float i{c} = {_dot(terms)};")
        names.append(f"const float {letter} = i{c};")
        backward += [f"const float s{c} = d{node} * o{c};", *_spread(architecture, f"s{c}", terms)]
    form = FORMS[operator.name]
    inputs = " ".join(names)
    forward += [f"float v{node}; {{ {inputs} v{node} = {form.value}; }}"]
    slopes = " ".join(f"o{c} = {slope};" for c, slope in zip(connections, form.slopes, strict=True))
    ahead = [f"float o{c};" for c in connections]
    ahead += [f"{{ {inputs} const float v = v{node}; (void)v; {slopes} }}"]
    return forward, ahead + backward


def _dot(terms: Sequence[tuple[int, str, str]]) -> str:
    return " + ".join(f"{factor} * v{source}" for source, factor, _ in terms)


def _spread(architecture: Architecture, slope: str, terms: Sequence[tuple[int, str, str]]) -> list[str]:
    """What a slope gives to the factors of a weighted sum, and to the nodes below."""
    lines = [f"{total} += {slope} * v{source};" for source, _, total in terms]
    return lines + [
        f"d{source} += {slope} * {factor};" for source, factor, _ in terms if source >= architecture.n_inputs
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
