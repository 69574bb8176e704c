"""SRBench's metrics, computed in one place for every system from the formula text it returned.

- accuracy solution: test R² > 0.999;
- symbolic solution: the difference or the ratio to the truth is a constant. SRBench asks SymPy, after rounding numbers
  to three decimals and dropping those below 1e-4. Here a bounded canonical form (four significant digits) is asked
  first; where it says no, SymPy's `simplify` is, with SRBench's rounding. Either yes counts, and in both cases the
  numbers must agree as well (after the best offset or factor, within 1 % of std(y)), so that rounding alone solves nothing;
- size: nodes of the SymPy tree after `simplify`, or before it where that is smaller or takes too long.

Text is read by `gmeql.formula.parsing`, never run. SymPy works in a child process that is ended at a limit.
"""

from __future__ import annotations

import math
import multiprocessing
import resource
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gmeql.formula.canonical import Undecided, active_part, canonical, evaluate
from gmeql.formula.parsing import parse_formula

ACCURATE = 0.999
WORTH_ASKING = 0.5
"""SRBench compares formulas only where test R² is above this."""
DECIMALS = 3
NEGLIGIBLE = 1e-4
AGREEMENT = 1e-2
POINTS = 500
SECONDS = 10.0
"""Limit of one comparison in SymPy."""
PATIENCE = 20
"""Limits count a child's own computing, so that a busy machine changes no verdict; on the wall it may take this much longer."""
SIZE_SECONDS = 5.0
"""Limit of one simplification for the size alone."""
MAX_SIMPLIFIED = 250
"""Trees with more nodes are not simplified: it would not end in time."""


def names_of(columns: int) -> list[str]:
    return [f"x{i + 1}" for i in range(columns)]


def accuracy(formula: str, X: np.ndarray, y: np.ndarray) -> dict[str, float | None]:
    """R² and the largest error, in units of std(y), of a formula on test rows; None where it is not finite."""
    names = names_of(X.shape[1])
    values = evaluate(parse_formula(formula, names), dict(zip(names, X.T)))
    error = np.broadcast_to(values, y.shape) - y
    spread = float(np.var(y)) or 1.0
    if not np.isfinite(error).all():
        return {"r2": None, "max_error": None}
    with np.errstate(over="ignore"):
        r2 = 1 - float(np.mean(error**2)) / spread
    return {"r2": r2 if math.isfinite(r2) else None, "max_error": float(np.max(np.abs(error))) / math.sqrt(spread)}


def score(record: dict[str, Any], *, seconds: float = SECONDS) -> dict[str, Any]:
    """`symbolic` (None where the truth is unknown), its `reason`, `accurate` and `size` of a record."""
    r2, formula, truth = record.get("r2"), record.get("formula"), record.get("truth")
    result: dict[str, Any] = {"accurate": r2 is not None and r2 > ACCURATE, "size": None}
    result |= {"symbolic": None if truth is None else False, "reason": record.get("error") or "no formula"}
    if not formula or record.get("error"):
        return result
    ranges = record["ranges"]
    result["size"] = within(SIZE_SECONDS, size, formula, len(ranges), default=None)
    if result["size"] is None:
        result["size"] = within(seconds, size, formula, len(ranges), False, default=None)
    if truth is None:
        return result | {"reason": "the truth is unknown"}
    # A constant offset or factor may cost R², so only formulas that are not finite on test rows are left out as such.
    if r2 is None:
        return result | {"reason": "not finite on test rows"}
    if r2 <= WORTH_ASKING:
        return result | {"reason": f"test R² {r2:.2f} is not worth a comparison"}
    solved, reason = within(
        seconds, symbolic_solution, formula, truth, ranges, default=(False, "took too long to compare")
    )
    return result | {"symbolic": solved, "reason": reason}


def symbolic_solution(formula: str, truth: str, ranges: Sequence[Sequence[float]]) -> tuple[bool, str]:
    """Whether difference or ratio of two formulas is a constant, and how that was decided. `ranges`: low, high."""
    names = names_of(len(ranges))
    low, high = np.asarray(ranges, dtype=float).T
    columns = dict(zip(names, np.random.default_rng(0).uniform(low, high, (POINTS, len(ranges))).T))
    found, true = (active_part(parse_formula(text, names), columns) for text in (formula, truth))
    if not _numbers_agree(found, true, columns):
        return False, "the numbers differ"
    clean = without_small(found)
    if not _numbers_agree(clean, true, columns):
        clean = found
    for a, b in ((found, true), (clean, true), (rounded(clean), rounded(true))):
        if _canonical_constant(a, b):
            return True, "canonical forms"
    import sympy

    clean = rounded(sympy.simplify(clean, ratio=1))
    for combined in (rounded(true) - clean, clean / rounded(true)):
        if not rounded(combined).free_symbols or not rounded(sympy.simplify(combined, ratio=1)).free_symbols:
            return True, "SymPy"
    return False, "another formula"


def without_small(expression: Any) -> Any:
    """The expression with constants below 1e-4 set to 0, exponents aside: the rest of single-precision searches."""
    import sympy

    if not expression.args:
        return sympy.Integer(0) if expression.is_Float and abs(expression) < NEGLIGIBLE else expression
    if expression.is_Pow:
        base = without_small(expression.base)
        return expression if base == 0 else base**expression.exp
    return expression.func(*(without_small(a) for a in expression.args))


def size(formula: str, columns: int, simplify: bool = True) -> int:
    """Nodes of the SymPy tree."""
    import sympy

    expression = rounded(parse_formula(formula, names_of(columns)))
    nodes = _nodes(expression)
    if simplify and nodes <= MAX_SIMPLIFIED:
        nodes = min(nodes, _nodes(sympy.simplify(expression, ratio=1)))
    return nodes


def rounded(expression: Any) -> Any:
    """Floating-point constants to three decimals, or three digits below 1; those below 1e-4 go. Exponents that are
    fractions become fractions."""
    import sympy

    if not expression.free_symbols and not expression.is_Rational:
        value = float(evaluate(expression, {}))
        if not math.isfinite(value):
            return expression
        if abs(value) < NEGLIGIBLE:
            return sympy.Integer(0)
        return sympy.Rational(f"{value:.{DECIMALS}f}" if abs(value) >= 1 else f"{value:.{DECIMALS}g}")
    if not expression.args:
        return expression
    if expression.is_Pow and not expression.exp.free_symbols:
        exponent = float(evaluate(expression.exp, {}))
        twelfths = round(exponent * 12)
        near = abs(exponent * 12 - twelfths) < 0.02
        power = sympy.Rational(twelfths, 12) if near else sympy.Rational(f"{exponent:.{DECIMALS}f}")
        base = rounded(expression.base)
        return expression if base == 0 and power < 0 else base**power
    return expression.func(*(rounded(a) for a in expression.args))


def _nodes(expression: Any) -> int:
    import sympy

    return sum(1 for _ in sympy.preorder_traversal(expression))


def _numbers_agree(found: Any, true: Any, columns: dict[str, np.ndarray]) -> bool:
    a, b = (np.broadcast_to(evaluate(e, columns), (POINTS,)) for e in (found, true))
    usable = np.isfinite(b)
    a, b = a[usable], b[usable]
    if not usable.any() or not np.isfinite(a).all():
        return False
    spread = float(np.std(b)) or 1.0
    with np.errstate(all="ignore"):
        offset = float(np.std(a - b))
        factor = float(a @ b / (a @ a)) if a.any() else 0.0
        ratio = float(np.sqrt(np.mean((factor * a - b) ** 2)))
    return min(offset, ratio) <= AGREEMENT * spread


def _canonical_constant(found: Any, true: Any) -> bool:
    """Whether the canonical forms differ by a constant, or are multiples of each other."""
    try:
        a, b = dict(canonical(found)), dict(canonical(true))
    except Undecided:
        return False
    products = (set(a) | set(b)) - {()}
    if all(_close(a.get(p, 0.0), b.get(p, 0.0)) for p in products):
        return True
    kept = {p for p in set(a) | set(b) if abs(a.get(p, 0.0)) > NEGLIGIBLE or abs(b.get(p, 0.0)) > NEGLIGIBLE}
    if not kept or any(not a.get(p) or not b.get(p) for p in kept):
        return False
    ratios = [a[p] / b[p] for p in kept]
    return all(_close(ratio, ratios[0]) for ratio in ratios)


def _close(a: float, b: float) -> bool:
    return abs(a - b) <= max(NEGLIGIBLE, 10**-DECIMALS * max(abs(a), abs(b)))


# ---------------------------------------------------------------------------------------------------------- bounded work


def within(seconds: float, function: Callable[..., Any], *arguments: Any, default: Any) -> Any:
    """`function(*arguments)` in a child process; `default` where it fails or computes for longer."""
    # Forked off a server that has loaded nothing else: a fork of this process could inherit locks that threads hold.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["sympy", "gmeql.formula.parsing"])
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_send, args=(sender, seconds, function, arguments), daemon=True)
    child.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(PATIENCE * seconds) else default
    except EOFError:
        return default
    finally:
        child.kill()
        child.join()
        receiver.close()


def _send(sender: Any, seconds: float, function: Callable[..., Any], arguments: tuple) -> None:
    limit = math.ceil(seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    try:
        sender.send(function(*arguments))
    except (ValueError, TypeError, ArithmeticError, RecursionError, AttributeError, MemoryError, NotImplementedError):
        pass  # no answer is one: the default
    finally:
        sender.close()
