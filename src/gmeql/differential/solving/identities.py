"""Whether an expression vanishes identically, decided in bounded time.

The expression becomes a fraction of polynomials over generators that no algebra connects: variables, exponentials of
terms that are linearly independent over the rationals (waves are exponentials of imaginary ones), logarithms of
irreducible parts, roots with the relation each obeys. It vanishes when its numerator is zero. Every step is a known
identity and every size is limited: the answer is True, or "not shown", and nothing can hang.

>>> import sympy
>>> x = sympy.Symbol("x", positive=True)
>>> vanishes(sympy.sin(2 * x) - 2 * sympy.sin(x) * sympy.cos(x))
True
>>> vanishes(sympy.log(x**2 + x) - sympy.log(x) - sympy.log(x + 1) + sympy.sqrt(8) - 2 * sympy.sqrt(2))
True
>>> vanishes(sympy.sin(x) - x)
False
"""

from __future__ import annotations

from functools import reduce
from math import lcm
from typing import Any

from gmeql.differential.solving.config import PROOF
from gmeql.formula.canonical import Undecided

_MAX_OPERATIONS = 5_000
"""Operations of an expression that is looked at."""
_MAX_FACTORED = 60
"""Operations of a logarithm's argument up to which it is factored."""
_MAX_POWER = 40


def vanishes(expression: Any) -> bool:
    """Whether the expression is shown to be zero wherever it is defined."""
    if expression == 0:
        return True
    if expression.count_ops() > _MAX_OPERATIONS:
        return False
    try:
        generators = _Generators()
        form = generators.form(expression)
        return form == 0 or _Fractions(generators).vanishes(form)
    except (Undecided, ZeroDivisionError, NotImplementedError, RecursionError, OverflowError):
        return False


class _Generators:
    """What expressions are polynomials of; each is a symbol of its own."""

    def __init__(self) -> None:
        self.symbols: dict[Any, Any] = {}
        self.roots: dict[Any, tuple[Any, int]] = {}
        """Of each generator that is a root: what its q-th power is, as a form, and q."""
        self.units: dict[Any, int] = {}

    def _symbol(self, key: Any) -> Any:
        if key not in self.symbols:
            import sympy

            self.symbols[key] = sympy.Dummy(f"g{len(self.symbols)}")
        return self.symbols[key]

    def _root(self, base: Any, q: int) -> Any:
        known = ("root", base, q) in self.symbols
        symbol = self._symbol(("root", base, q))
        if not known:
            self.roots[symbol] = (self._walk(base), q)
        return symbol

    def form(self, expression: Any) -> Any:
        """The expression as a rational function of generators."""
        import sympy

        if expression.has(sympy.atan, sympy.asin, sympy.acos):
            expression = sympy.expand_trig(expression)  # sin(4*atan(p)) is algebra of p
        waves = expression.atoms(
            sympy.sin, sympy.cos, sympy.tan, sympy.cot, sympy.sinh, sympy.cosh, sympy.tanh, sympy.coth
        )
        if waves:
            expression = expression.replace(lambda e: e in waves, lambda e: e.rewrite(sympy.exp))
        exponents = [e.args[0] for e in expression.atoms(sympy.exp)]
        exponents += [e.exp * sympy.log(e.base) for e in expression.atoms(sympy.Pow) if not e.exp.is_Rational]
        self.units = _units([*exponents, sympy.Integer(1)] if expression.has(sympy.E) else exponents)
        return self._walk(expression)

    def _walk(self, e: Any) -> Any:
        import sympy

        if e.is_Rational:
            return e
        if e is sympy.I:
            return self._root(sympy.Integer(-1), 2)
        if e.is_Symbol:
            return self._symbol(e)
        if e.is_Add or e.is_Mul:
            return e.func(*(self._walk(a) for a in e.args))
        if e is sympy.E:
            return self._exponential(sympy.Integer(1))
        if isinstance(e, sympy.exp):
            return self._exponential(e.args[0])
        if e.is_Pow:
            return self._power(e)
        if isinstance(e, sympy.log):
            return self._logarithm(e)
        if e.is_Float:
            raise Undecided("a decimal number is not exact")
        if e.is_Function:
            return self._symbol(e.func(*(sympy.factor(a) for a in e.args)))
        if e.is_NumberSymbol:
            return self._symbol(e)
        raise Undecided(f"{type(e).__name__} has no normal form here")

    def _power(self, e: Any) -> Any:
        import sympy

        if e.exp.is_Integer:
            if abs(int(e.exp)) > _MAX_POWER:
                raise Undecided("a high power")
            return self._walk(e.base) ** e.exp
        if e.exp.is_Rational:
            return self._root(e.base, int(e.exp.q)) ** e.exp.p
        return self._exponential(e.exp * sympy.log(e.base))

    def _exponential(self, exponent: Any) -> Any:
        """exp of a sum: a product of powers of exp(term/L), one generator for all rational multiples of a term."""
        import sympy

        result = sympy.Integer(1)
        for unit, factor in _terms(exponent).items():
            if isinstance(unit, sympy.log):
                result *= self._walk(unit.args[0] ** factor)
            else:
                power = factor * self.units.get(unit, factor.q)
                if not power.is_Integer or abs(int(power)) > 50 * _MAX_POWER:
                    raise Undecided("an exponent of its own")
                result *= self._symbol(("exp", unit)) ** power
        return result

    def _logarithm(self, e: Any) -> Any:
        import sympy

        argument = e.args[0]
        if argument.count_ops() <= _MAX_FACTORED:
            argument = sympy.factor(sympy.together(argument))
        parts = sympy.expand_log(sympy.log(argument), force=True, factor=True)
        return self._walk(parts.replace(lambda p: isinstance(p, sympy.log), self._symbol))


def _terms(exponent: Any) -> dict[Any, Any]:
    """An exponent as rational multiples of terms."""
    import sympy

    parts: dict[Any, Any] = {}
    for term in sympy.Add.make_args(sympy.expand(exponent)):
        factor, unit = term.as_coeff_Mul(rational=True)
        parts[unit] = parts.get(unit, sympy.Integer(0)) + factor
    return parts


def _units(exponents: list[Any]) -> dict[Any, int]:
    """For each term of the exponents, the common denominator of its rational factors."""
    found: dict[Any, list[int]] = {}
    for exponent in exponents:
        for unit, factor in _terms(exponent).items():
            found.setdefault(unit, []).append(int(factor.q))
    return {unit: reduce(lcm, denominators) for unit, denominators in found.items()}


Fraction = tuple[Any, dict[Any, int]]
"""A numerator, and the powers of the factors below it; nothing is cancelled, so no greatest common divisors are sought."""


class _Fractions:
    """Rational functions of generators, as polynomials above and factors below."""

    def __init__(self, generators: _Generators) -> None:
        from sympy import QQ
        from sympy.polys.rings import PolyRing

        symbols = list(dict.fromkeys(generators.symbols.values()))
        self.ring = PolyRing(symbols, QQ)
        self.work = 0
        self.place = {symbol: k for k, symbol in enumerate(symbols)}
        self.roots: dict[int, tuple[Any, int]] = {}
        """By the place of a root: its q-th power, a polynomial, and q."""
        self.below: dict[Any, Any] = {}
        """By the symbol of a root: the denominator that was taken out of it."""
        for symbol, (base, q) in generators.roots.items():  # inner roots stand before those around them
            above, under = self.fraction(base)
            for factor, power in under.items():  # (N/D)**(1/q) = (N*D**(q-1))**(1/q) / D
                above = self._times(above, self._power(factor, power * (q - 1)))
            self.roots[self.place[symbol]] = (above, q)
            self.below[symbol] = under

    def vanishes(self, form: Any) -> bool:
        above, _ = self.fraction(form)
        return not above

    def fraction(self, form: Any) -> Fraction:
        if form.is_Rational:
            return self.ring.domain_new(form) * self.ring.one, {}
        if form.is_Symbol:
            return self.ring.gens[self.place[form]], dict(self.below.get(form, {}))
        parts = [self.fraction(a) for a in (form.args if not form.is_Pow else form.args[:1])]
        if form.is_Add:
            return self._sum(parts)
        if form.is_Mul:
            above, under = parts[0]
            for more, also in parts[1:]:
                above = self._times(above, more)
                under = {factor: under.get(factor, 0) + also.get(factor, 0) for factor in {**under, **also}}
            return above, under
        if form.is_Pow and form.exp.is_Integer:
            (above, under), power = parts[0], int(form.exp)
            if power > 0:
                return self._power(above, power), {factor: k * power for factor, k in under.items()}
            if not above:
                raise ZeroDivisionError("a denominator vanishes identically")
            result = self.ring.one
            for factor, k in under.items():
                result = self._times(result, self._power(factor, -k * power))
            return result, {above: -power}
        raise Undecided(f"{form} is no rational function")

    def _sum(self, parts: list[Fraction]) -> Fraction:
        common: dict[Any, int] = {}
        for _, under in parts:
            for factor, power in under.items():
                common[factor] = max(common.get(factor, 0), power)
        total = self.ring.zero
        for above, under in parts:
            for factor, power in common.items():
                above = self._times(above, self._power(factor, power - under.get(factor, 0)))
            total = total + above
        return total, common

    def _power(self, p: Any, power: int) -> Any:
        result = self.ring.one
        for _ in range(power):
            result = self._times(result, p)
        return result

    def _times(self, p: Any, q: Any) -> Any:
        self._spend(len(p) * len(q))
        return self._reduced(p * q)

    def _spend(self, products: int) -> None:
        self.work += products
        if self.work > PROOF.max_work:
            raise Undecided("the normal form takes too much work")

    def _reduced(self, p: Any) -> Any:
        """The polynomial with every root's powers below its own."""
        for place, (base, q) in reversed(self.roots.items()):
            while any(monomial[place] >= q for monomial in p):
                result = self.ring.zero
                for monomial, coefficient in p.terms():
                    turns, rest = divmod(monomial[place], q)
                    lower = (*monomial[:place], rest, *monomial[place + 1 :])
                    term = self.ring({lower: coefficient})
                    for _ in range(turns):
                        self._spend(len(term) * len(base))
                        term = term * base
                    self._spend(len(result))
                    result += term
                p = result
        return p
