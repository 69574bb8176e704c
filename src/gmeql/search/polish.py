"""Formulas without ballast: drop what the data do not need, refit, and round constants to what people recognise.

Raw solutions carry terms that cancel, dead terms and constants such as 1.9999999998. Every shorter formula that one
cut can make is refitted to the data, and kept when the description length falls: half the rows times the log of the
loss, plus what the constants and the nodes cost. On noise-free data the loss counts only down to rounding level; on
noisy data a constant must earn its keep, so a constant that the noise cannot tell from a short number becomes it.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np

from gmeql.fitters import fit
from gmeql.fitters.programs import Program, ProgramTooLong, from_expression, input_slots, replace_constants
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import (
    Call,
    Constant,
    Node,
    Variable,
    build,
    fold,
    is_plain_exponent,
    leaves,
    transform,
    tree_complexity,
)
from gmeql.formula.ratios import as_ratio
from gmeql.formula.simplify import simplify

ROUNDING = 1e-11
"""Relative error (root mean square, against the target's spread) below which a formula is exact on the data."""
NODE_COST = 2.0
"""Description length of one unit of complexity, in nats: a symbol has to be named, and the search tries thousands of
formulas of which the luckiest must not win."""
DEAD = 1e-9
"""A term this much smaller than the largest of its sum, on every row, is dropped untried."""
REFIT_STEPS = 25
REFITTED_TOGETHER = 50
"""Formulas refitted between two looks at the clock."""
LARGEST_EXCHANGED = 35
"""Complexity up to which exchanges are tried: a long formula has thousands."""
LOOK_AHEAD = 4
"""Formulas, the shortest and as many of the best fitting, from which a second cut or exchange is tried where no
single one helps."""


@dataclass(frozen=True)
class Rows:
    """Data that formulas are judged on: input slots, target [N], weights [N] (mean 1), target's spread."""

    X: np.ndarray
    inputs: np.ndarray
    target: np.ndarray
    weights: np.ndarray
    names: tuple[str, ...]
    n_threads: int = 1

    @classmethod
    def of(
        cls, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None, names: Iterable[str], n_threads: int = 1
    ) -> Rows:
        weights = np.ones(len(y)) if weights is None else weights / weights.mean()
        return cls(X, input_slots(X)[0], y, weights, tuple(names), n_threads)

    @property
    def n_variables(self) -> int:
        return self.X.shape[1]

    @cached_property
    def is_positive(self) -> Callable[[Node], bool]:
        """A predicate: whether a part of a formula is positive on every row (of a sample of them)."""
        known: dict[Node, bool] = {}
        sample = self.X[:512]

        def positive(node: Node) -> bool:
            if node not in known:
                known[node] = bool((Expression(node, self.names)(sample) > 0).all())
            return known[node]

        return positive

    @cached_property
    def spread(self) -> float:
        """Weighted standard deviation of the target; its magnitude where it is constant."""
        mean = np.average(self.target, weights=self.weights)
        spread = math.sqrt(np.average((self.target - mean) ** 2, weights=self.weights))
        return spread or float(np.abs(self.target).max()) or 1.0

    @cached_property
    def floor(self) -> float:
        """Loss at rounding level."""
        return max((ROUNDING * self.spread) ** 2, (4e-15 * float(np.abs(self.target).max())) ** 2, 1e-300)


class Scored:
    """A formula with its loss (weighted mean squared error) and description length on some rows.

    The tree with the fitted constants is built when it is first asked for: most formulas are only compared.
    """

    def __init__(
        self,
        root: Node,
        loss: float,
        length: float,
        complexity: int | None = None,
        rebuild: Callable[[], Node] | None = None,
    ) -> None:
        self._root = root
        self._rebuild = rebuild
        self.loss = loss
        self.length = length
        self.complexity = tree_complexity(root) if complexity is None else complexity

    @property
    def root(self) -> Node:
        if self._rebuild is not None:
            self._root, self._rebuild = self._rebuild(), None
        return self._root


def description_length(root: Node, loss: float, rows: Rows) -> float:
    """Nats to state the residuals, the constants and the shape of a formula."""
    return _length(loss, n_loose_constants(root), tree_complexity(root), rows)


def _length(loss: float, n_constants: int, complexity: int, rows: Rows) -> float:
    n = len(rows.target)
    if not math.isfinite(loss) or n_constants >= n - 1:
        return math.inf
    variance = max(loss, rows.floor) * n / (n - n_constants)
    return 0.5 * n * math.log(variance) + 0.5 * math.log(n) * n_constants + NODE_COST * complexity


def refit(
    roots: Iterable[Node], rows: Rows, *, keep_recognised: bool = True, max_steps: int = REFIT_STEPS
) -> list[Scored]:
    """Refit the constants of several formulas; those that cannot be a program or do not fit are left out.

    ``keep_recognised`` holds constants that are already short numbers.
    """
    expressions, programs = [], []
    for root in roots:
        expression = Expression(root, rows.names)
        fixed = {i for i, v in enumerate(expression.constants) if keep_recognised and _is_recognised(v)}
        try:
            programs.append(from_expression(root, rows.n_variables, fixed))
        except ProgramTooLong:
            continue
        expressions.append(expression)
    if not programs:
        return []
    result = fit(
        programs,
        None,
        rows.inputs,
        rows.target,
        rows.weights,
        max_steps=max_steps,
        tolerance=1e-7,
        n_threads=rows.n_threads,
    )
    scored = []
    for expression, program, constants, loss in zip(
        expressions, programs, result.constants, result.losses, strict=True
    ):
        if not math.isfinite(loss) or not np.isfinite(constants[: len(program.start)]).all():
            continue
        complexity = expression.complexity
        length = _length(float(loss), program.n_free, complexity, rows)
        refitted = partial(_refitted, expression, program, constants)
        scored.append(Scored(expression.root, float(loss), length, complexity, refitted))
    return scored


def _refitted(expression: Expression, program: Program, constants: np.ndarray) -> Node:
    return replace_constants(expression, program, constants).root


def _never() -> bool:
    return False


def clean(root: Node, rows: Rows) -> Node | None:
    """Normal form of a formula, or None where its constants overflow.

    Constants lose the sixteenth digit, so that 0.9 times 1.2 over 1.2 is 0.9 again.
    """
    try:
        return transform(simplify(root, rows.is_positive), _without_last_digit)
    except (ArithmeticError, ValueError):
        return None


def _without_last_digit(leaf: Node) -> Node:
    return Constant(float(f"{leaf.value:.15g}")) if isinstance(leaf, Constant) else leaf


# --- cutting ------------------------------------------------------------------------------------------------------


def reductions(node: Node) -> Iterator[Node]:
    """Every formula that one cut makes: a term or factor less, an exponent rounded, a phase turned into a cosine."""
    if not isinstance(node, Call) or node.protected:
        return
    for i, arg in enumerate(node.args):
        for shorter in reductions(arg):
            yield build(node.operator, *node.args[:i], shorter, *node.args[i + 1 :])
    name = node.operator
    if name in ("add", "mul"):
        for i, arg in enumerate(node.args):
            if name == "add" or not isinstance(arg, Constant):
                yield build(name, *node.args[:i], *node.args[i + 1 :])
    elif name == "div":
        if not isinstance(node.args[0], Constant):
            yield build("inv", node.args[1])
        yield node.args[0]
    elif name == "sub":
        yield node.args[0]
        yield build("neg", node.args[1])
    elif name == "pow" and isinstance(node.args[1], Constant) and not is_plain_exponent(node.args[1]):
        exponent = node.args[1].value
        for parts in (1, 2, 3):
            near = round(exponent * parts) / parts
            if near != exponent and abs(near - exponent) < 0.2:
                yield build("pow", node.args[0], Constant(near))
        yield Constant(1.0)
    elif name in ("sin", "cos") and isinstance(node.args[0], Call) and node.args[0].operator == "add":
        yield from _without_phase(node)
    elif name in ("asin", "acos") and isinstance(node.args[0], Call) and node.args[0].operator in ("sin", "cos"):
        inner = node.args[0].args[0]  # on one half-turn these undo each other, up to a quarter turn and the sign
        if name[1:] == node.args[0].operator:
            yield inner
        else:
            yield build("sub", Constant(math.pi / 2), inner)
        yield build("neg", inner)
        yield build("add", Constant(math.pi / 2), inner)


_EXPONENTS = {"square": 2.0, "cube": 3.0, "pow4": 4.0, "pow5": 5.0, "pow6": 6.0, "sqrt": 0.5}
_FUNCTIONS = frozenset({"sin", "cos", "exp", "log", "tanh"})


def exchanges(node: Node) -> Iterator[Node]:
    """Every formula that one exchange makes: another power of a column, or one or two powers instead of a function.

    Under noise a sine or a fifth power can stand in for a cube so well that only trying the cube shows it is better.
    """
    if not isinstance(node, Call) or node.protected:
        return
    for i, arg in enumerate(node.args):
        for other in exchanges(arg):
            yield build(node.operator, *node.args[:i], other, *node.args[i + 1 :])
    columns = {leaf for leaf in leaves(node) if isinstance(leaf, Variable)}
    if len(columns) != 1:
        return
    (column,) = columns
    exponent = _EXPONENTS.get(node.operator)
    if node.operator == "pow" and isinstance(node.args[1], Constant):
        exponent = node.args[1].value
    if (exponent is not None and node.args[0] == column) or node.operator in _FUNCTIONS:
        powers = [build("pow", column, Constant(float(whole))) for whole in range(1, 7)]
        yield from (power for power in powers if power != node)
        if node != column:
            for low, high in itertools.combinations(powers, 2):
                yield build("add", low, Call("mul", (Constant(1.0), high)))


def _without_phase(node: Call) -> Iterator[Node]:
    """sin(u + c) with c near a multiple of a quarter turn, as plus or minus sin(u) or cos(u)."""
    inner = node.args[0]
    assert isinstance(inner, Call)
    phase = sum(arg.value for arg in inner.args if isinstance(arg, Constant))
    rest = [arg for arg in inner.args if not isinstance(arg, Constant)]
    if phase == 0.0 or not rest:
        return
    quarters = round(phase / (math.pi / 2))
    if abs(phase - quarters * math.pi / 2) > 0.1:
        return
    turned = (quarters + (node.operator == "cos")) % 4
    function = build("sin" if turned % 2 == 0 else "cos", build("add", *rest))
    yield build("neg", function) if turned >= 2 else function


def prune(
    root: Node,
    rows: Rows,
    *,
    max_rounds: int = 20,
    exchange: bool = False,
    out_of_time: Callable[[], bool] = _never,
) -> list[Scored]:
    """Cut as long as the description length falls. Returns every formula met, the final one first.

    ``exchange`` also tries other powers and functions in place; for formulas that no cut makes exact.
    """
    start = clean(root, rows)
    met = refit([without_dead_terms(start, rows)], rows, keep_recognised=False) if start is not None else []
    if not met:
        return []
    current = met[0]
    seen = {current.root}
    for _ in range(max_rounds):
        if out_of_time():
            break
        exchanging = exchange and current.loss > 100 * rows.floor and current.complexity <= LARGEST_EXCHANGED
        tried = _tried([current], exchanging, rows, seen, out_of_time)
        met += tried
        better = sorted((t for t in tried if t.length < current.length), key=lambda scored: scored.length)
        if not better and exchanging and not out_of_time():
            # two terms that stand in for one another's neighbours only come right together
            starts = sorted(tried, key=lambda scored: scored.length)[:LOOK_AHEAD]
            starts += [t for t in sorted(tried, key=lambda scored: scored.loss)[:LOOK_AHEAD] if t not in starts]
            tried = _tried(starts, exchanging, rows, seen, out_of_time)
            met += tried
            better = sorted((t for t in tried if t.length < current.length), key=lambda scored: scored.length)
        if not better:
            break
        again = clean(better[0].root, rows)
        refitted = refit([again], rows, keep_recognised=False) if again not in (None, better[0].root) else []
        current = min([*refitted, better[0]], key=lambda scored: round(scored.length, 6))  # normal form wins ties
        met.append(current)
    return [current, *(scored for scored in met if scored is not current)]


def _tried(
    starts: list[Scored], exchanging: bool, rows: Rows, seen: set[Node], out_of_time: Callable[[], bool]
) -> list[Scored]:
    """What one cut, or one exchange, makes of some formulas, refitted; none that was ``seen``."""
    others: set[Node] = set()
    for start in starts:
        others.update(reductions(start.root))
        if exchanging:
            others.update(exchanges(start.root))
    others = {other for other in others - seen if not isinstance(other, Constant)}
    seen |= others
    ordered = sorted(others, key=hash_order)
    tried: list[Scored] = []
    for first in range(0, len(ordered), REFITTED_TOGETHER):
        if out_of_time():
            break
        tried += refit(ordered[first : first + REFITTED_TOGETHER], rows, keep_recognised=False)
    return tried


def hash_order(node: Node) -> tuple[int, str]:
    """An order that is the same in every process."""
    return node.size, repr(node)


def without_dead_terms(node: Node, rows: Rows) -> Node:
    """Sums without terms that rounding swallows beside the largest one."""
    sample = rows.X[:128]

    def call(part: Call, args: list[Node]) -> Node:
        if part.operator != "add":
            return build(part.operator, *args) if not part.protected else Call(part.operator, tuple(args), True)
        sizes = [float(np.abs(Expression(arg, rows.names)(sample)).max()) for arg in args]
        kept = [arg for arg, size in zip(args, sizes, strict=True) if not size < DEAD * max(sizes)]
        return build("add", *kept)

    return fold(node, lambda leaf: leaf, call)


# --- rounding -----------------------------------------------------------------------------------------------------

_UNITS = (1.0, math.pi, math.pi**2, 1 / math.pi, math.sqrt(2.0))
_FRACTIONS = sorted({p / q for q in (1, 2, 3, 4, 5, 6, 8) for p in range(1, 33)})


@lru_cache(maxsize=4096)
def _is_recognised(value: float) -> bool:
    """Whether a constant is a number people write down: a few digits, a small fraction, a small multiple of pi."""
    return any(value == candidate for candidate in recognised(value))


def n_loose_constants(root: Node) -> int:
    """How many constants of a formula were fitted rather than recognised."""
    return sum(isinstance(leaf, Constant) and not _is_recognised(leaf.value) for leaf in leaves(root))


def all_recognised(root: Node) -> bool:
    """Whether every constant of a formula is a number people write down."""
    return n_loose_constants(root) == 0


@lru_cache(maxsize=4096)
def recognised(value: float) -> tuple[float, ...]:
    """Numbers people write down near ``value``, the plainest first."""
    if value == 0.0 or not math.isfinite(value):
        return (0.0,)
    sign, size = math.copysign(1.0, value), abs(value)
    found = _short_decimals(size)
    for unit in _UNITS:
        place = bisect.bisect(_FRACTIONS, size / unit)
        found += [fraction * unit for fraction in _FRACTIONS[max(place - 1, 0) : place + 1]]
    close = [f for f in found if f > 0 and abs(f - size) < 0.05 * size]
    return tuple(sign * f for f in dict.fromkeys(close))


def _short_decimals(value: float) -> list[float]:
    """The nearest whole number and decimals of one to three digits, within 5 %; the shortest first."""
    if value == 0.0 or not math.isfinite(value):
        return [0.0]
    digits = -math.floor(math.log10(abs(value)))
    found = [float(round(value))] if abs(value) < 1e6 else []
    found += [round(value, digits + extra) for extra in range(3)]
    return [f for f in dict.fromkeys(found) if f != 0.0 and abs(f - value) < 0.05 * abs(value)]


def snap(scored: Scored, rows: Rows, out_of_time: Callable[[], bool] = _never) -> Scored:
    """Round constants to recognised numbers, one after the other, as long as the description length does not rise.

    On noise-free data a rounded constant must leave the fit at rounding level; there all are tried at once first.
    """
    current = scored
    for _ in range(12):
        if out_of_time():
            break
        constants = Expression(current.root, rows.names).constants
        loose = [i for i, v in enumerate(constants) if not _is_recognised(v)]
        if not loose:
            break
        exact = current.loss <= 100 * rows.floor
        tries: list[Node] = []
        if exact:
            tries.append(_with(current.root, {i: _closest(constants[i]) for i in loose}, rows))
        tries += [_with(current.root, {i: value}, rows) for i in loose for value in _nearby(constants[i], exact)]
        best = min(refit(tries, rows), key=lambda s: s.length, default=None)
        if best is None or best.length > current.length:
            break
        tidy = clean(best.root, rows)
        tidied = refit([tidy], rows) if tidy is not None else []
        current = min([best, *tidied], key=lambda s: (s.length, s.complexity))
    return current


def _closest(value: float) -> float:
    return min(recognised(value), key=lambda candidate: abs(candidate - value), default=value)


def _nearby(value: float, exact: bool) -> list[float]:
    if exact:
        return [candidate for candidate in recognised(value) if abs(candidate - value) < 1e-6 * abs(value)][:2]
    return _short_decimals(value)  # noise cannot tell 22/5/pi from 1.4


def _with(root: Node, changes: dict[int, float], rows: Rows) -> Node:
    expression = Expression(root, rows.names)
    values = [changes.get(i, v) for i, v in enumerate(expression.constants)]
    return expression.with_constants(values).root


def polish(root: Node, rows: Rows, out_of_time: Callable[[], bool] = _never, *, exchange: bool = True) -> list[Scored]:
    """The cleanest form of a formula and the shorter ones met on the way, the cleanest first."""
    met = prune(root, rows, exchange=exchange, out_of_time=out_of_time)
    if not met:
        return []
    final = snap(met[0], rows, out_of_time)
    alive = clean(without_dead_terms(final.root, rows), rows)
    others = [alive, _as_one_fraction(final.root, rows)]
    tidy = refit([root for root in others if root not in (None, final.root)], rows)
    return [min([final, *tidy], key=lambda s: s.length), *met]


def _as_one_fraction(root: Node, rows: Rows) -> Node | None:
    fraction = as_ratio(root)
    return None if fraction is None else clean(fraction, rows)
