"""Systems of equations compared on the measured trajectories, and the front of them.

A system is judged by its description length: how far its trajectories stay from the measured ones, its constants, and its
size, in which a term that several equations share counts once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.measured import Motion
from gmeql.differential.motion.shooting import Fitted, Shooting
from gmeql.differential.motion.sides import RightSides, shared_terms, terms_of, unsigned, with_values
from gmeql.differential.motion.terms import outline
from gmeql.formula.bounds import bounds
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Node, Variable, build, calls, tree_complexity
from gmeql.formula.operators import EXPONENTS
from gmeql.formula.products import as_product, split_terms
from gmeql.formula.simplify import simplify
from gmeql.model.pareto.rules import rounding_level
from gmeql.search.polish.scoring import length_in_nats

FloatArray = NDArray[np.float64]
COEFFICIENT = 2
"""Complexity of a coefficient: the number and its product."""
UNBOUNDED = ("div", "inv", "pow", "log", "tan")
"""Operators that may have no value or no bounds between values where they have."""
ARITHMETIC = ("add", "sub", "mul", "div", "neg", "pow")


@dataclass(frozen=True)
class System:
    """Equations with constants fitted to the trajectories."""

    equations: tuple[Node, ...]
    """Of the states that are looked for; see `Columns.whole`."""
    loss: float
    """Root mean squared distance to the measurements, in spreads of the states."""
    complexity: int
    length: float
    """Nats that the system and its distance to the measurements take; up to a constant of the data."""
    fitted: Fitted

    @property
    def is_finite(self) -> bool:
        return math.isfinite(self.length)


def plain(root: Node) -> Node:
    """A formula in normal form, or as it is where its constants overflow."""
    try:
        return simplify(root)
    except (ArithmeticError, ValueError):
        return root


def plain_complexity(root: Node) -> int:
    """Complexity of a formula in normal form.

    That form is the same for all constants but 1 and those that are equal, so it is made once for a structure.
    """
    values = RightSides.of([root], 0).values
    places: dict[float, int] = {}
    typical = [
        v if abs(v) in (0.0, 1.0) else math.copysign(_typical(places.setdefault(abs(v), len(places))), v)
        for v in values
    ]
    return _plain_complexity(*with_values([root], typical))


def _typical(place: int) -> float:
    """A constant like any other, for each place: between 0.3 and 1.3, none twice."""
    return 0.3 + (0.37 + 0.6180339887 * place) % 1.0


@lru_cache(maxsize=20_000)
def _plain_complexity(root: Node) -> int:
    return tree_complexity(plain(root))


def system_complexity(equations: Sequence[Node]) -> int:
    """Complexity of all equations together; a term that stands in several counts once, and so does its coefficient.

    >>> from gmeql.formula.nodes import Call, Constant, Variable
    >>> flow = Call("mul", (Constant(0.3), Variable(0), Variable(1)))
    >>> back, other = (Call("mul", (Constant(c), Variable(0), Variable(1))) for c in (-0.3, 0.2))
    >>> system_complexity([flow]), system_complexity([flow, other]), system_complexity([flow, back])
    (5, 8, 6)
    """
    total = sum(map(plain_complexity, equations))
    split = [{term: abs(coefficient) for coefficient, term in split_terms(root)} for root in equations]
    terms = Counter(term for of_state in split for term in of_state)
    shared = sum((count - 1) * (tree_complexity(term) - 1) for term, count in terms.items() if count > 1)
    sizes = Counter((term, size) for of_state in split for term, size in of_state.items() if size != 1.0)
    return total - shared - sum((count - 1) * COEFFICIENT for count in sizes.values())


def n_functions(equations: Sequence[Node]) -> int:
    """How many calls laws seldom have: neither arithmetic nor whole powers up to the third, their inverses included.

    A term that several equations share counts once.

    >>> from gmeql.formula.nodes import Call, Constant, Variable
    >>> x = Variable(0)
    >>> [n_functions([Call(name, (x,))]) for name in ("square", "sqrt", "sin")]
    [0, 1, 1]
    """
    terms = {term for root in equations for _, term in split_terms(root)}
    return sum(_is_rare(call) for term in terms for call in calls(term))


def rarity(equations: Sequence[Node]) -> float:
    """Nats for what laws seldom have: functions, and products of more than two columns. A shared term counts once.

    >>> from gmeql.formula.nodes import Call, Variable
    >>> x, y = Variable(0), Variable(1)
    >>> [rarity([Call("mul", factors)]) for factors in ((x, y), (x, x, y), (x, Call("sin", (y,))))]
    [0.0, 2.5, 4.0]
    """
    terms = {term for root in equations for _, term in split_terms(root)}
    high = sum(_degree(term) > MOTION.system.usual_degree for term in terms)
    return MOTION.system.function_cost * n_functions(equations) + MOTION.system.degree_cost * high


def _degree(term: Node) -> float:
    """Columns that a term multiplies, each as often as it stands there."""
    _, powers = as_product(term)
    return sum(power for base, power in powers.items() if isinstance(base, Variable) and power > 0)


def _is_rare(call: Call) -> bool:
    """Whether laws seldom have such a call."""
    exponent = EXPONENTS.get(call.operator)
    if call.operator == "pow":
        exponent = call.args[1].value if isinstance(call.args[1], Constant) else math.nan
    if exponent is None:
        return call.operator not in ARITHMETIC
    return not (abs(exponent) <= MOTION.system.usual_power and exponent == round(exponent))


def n_poles(motion: Motion, equations: Sequence[Node]) -> int:
    """How many terms have no bounds near the measured states: laws seldom end just beyond what was measured."""
    terms = {term for root in equations for _, term in split_terms(root)}
    return sum(
        any(call.operator in UNBOUNDED for call in calls(term)) and not bounds(term, motion.surroundings).finite
        for term in terms
    )


def without_poles(motion: Motion, terms: Iterable[Node]) -> list[Node]:
    """Terms that have bounds near the measured states."""
    return [term for term in terms if not n_poles(motion, [term])]


def outlines(equations: Sequence[Node]) -> tuple[Node, ...]:
    """The structure of each equation: systems that differ in constants or in the order of terms only are one.

    Terms whose constants are shared are told from those that only look alike.
    """
    shared = shared_terms(equations)

    def outlined(term: Node) -> Node:
        return outline(term, 3.0 if unsigned(term) in shared else 2.0)

    return tuple(build("add", *sorted(map(outlined, terms_of(root)), key=repr)) for root in equations)


def fit_system(
    motion: Motion, equations: Sequence[Node], *, starts: FloatArray | None = None, quick: bool = True
) -> System:
    """The system with its constants fitted to the trajectories; `starts` [B, Z] are start values of a similar one."""
    numbers = MOTION.shooting
    shooting = Shooting(motion.pieces, motion.columns.whole(tuple(equations)), starts)
    fitted = shooting.fit(
        loose_steps=numbers.loose_steps if starts is None else 0,
        tight_steps=numbers.quick_steps if quick else numbers.tight_steps,
        tolerance=numbers.quick_tolerance if quick else numbers.tolerance,
    )
    return judged(motion, fitted)


def judged(motion: Motion, fitted: Fitted) -> System:
    """A fitted system with its figures."""
    E = motion.n_equations
    equations = fitted.roots[-E:]
    complexity = system_complexity(equations)
    spread = motion.trajectories.spread
    loss = float(np.sqrt(np.mean((fitted.distance / spread) ** 2)))
    points, constants = motion.pieces.points, fitted.free
    length = math.inf
    if np.isfinite(fitted.misfit).all() and points * E > constants + E:
        floor = (MOTION.system.exact * spread / motion.pieces.tie[:E]) ** 2
        variance = np.maximum(fitted.misfit, floor) * points / max(points - constants / E, 1.0)
        log_variance = float(np.mean(np.log(variance)))
        length = length_in_nats(
            log_variance, constants, complexity, n_rows=float(points * E), node_cost=MOTION.system.node_cost
        )
        length += rarity(equations)
        length += MOTION.system.pole_cost * n_poles(motion, equations)
    return System(equations, loss, complexity, length, fitted)


# --- the front --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SystemMember:
    """One system of the front with its figures."""

    equations: tuple[Expression, ...]
    """An expression for each state that was looked for."""
    loss: float
    complexity: int
    score: float
    """Drop of log(loss) per unit of complexity against the next simpler one; 0 for the simplest."""
    index: int
    length: float

    def __str__(self) -> str:
        return "; ".join(str(equation) for equation in self.equations)


@dataclass(frozen=True, repr=False)
class SystemFront(Sequence[SystemMember]):
    """Systems that nothing simpler beats, the simplest first."""

    members: tuple[SystemMember, ...]

    @classmethod
    def of(cls, systems: Sequence[System], names: tuple[str, ...]) -> SystemFront:
        """The front of systems that were compared."""
        floor = max(MOTION.system.exact, rounding_level(1.0, 1.0))
        chosen: list[SystemMember] = []
        for system in sorted((s for s in systems if s.is_finite), key=lambda s: (s.complexity, s.loss)):
            if chosen and (system.loss >= chosen[-1].loss or chosen[-1].loss <= floor):
                continue
            equations = tuple(Expression(plain(root), names) for root in system.equations)
            member = SystemMember(equations, system.loss, system.complexity, 0.0, len(chosen), system.length)
            if chosen:
                drop = math.log(max(chosen[-1].loss, floor) / max(system.loss, floor))
                member = replace(member, score=drop / max(system.complexity - chosen[-1].complexity, 1))
                if chosen[-1].complexity == member.complexity:
                    chosen.pop()
                    member = replace(member, index=len(chosen))
            chosen.append(member)
        if not chosen:
            raise ValueError("no system of equations stays finite on these trajectories; give more or smoother data")
        return cls(tuple(chosen))

    def select(self, rule: str = "best") -> SystemMember:
        """ "best": the shortest description; "accurate": the smallest loss; "simple": the largest score."""
        if rule == "accurate":
            return self.members[-1]
        if rule == "simple":
            return max(self.members, key=lambda m: (m.score, -m.complexity))
        return min(self.members, key=lambda m: (m.length, m.complexity))

    def __getitem__(self, index: Any) -> Any:
        try:
            return self.members[index]
        except IndexError:
            raise IndexError(f"index={index!r} is not on the front; use 0 to {len(self) - 1}") from None

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[SystemMember]:
        return iter(self.members)

    def __repr__(self) -> str:
        head = f"Front of {len(self)} systems\n{'complexity':>10}  {'loss':>10}  {'score':>7}  equations"
        return "\n".join([head, *(f"{m.complexity:>10d}  {m.loss:>10.4g}  {m.score:>7.3g}  {m}" for m in self)])
