"""Closed forms of differential equations: problems with a known solution, and some that have none.

    python benchmarks/solve.py [--problems ODE1,NL2] [--seconds 60] [--seed 0] [--json out/solve.jsonl]

ODE1-9, NL1-4, the systems and the elliptic problems are those of Tsoulos and Lagaris, "Solving differential equations
with genetic programming" (2006); the Poisson problems have Nguyen-1 to 8 as solutions. Those without a closed form must
end with a clear no. Seconds are of processor time; a problem counts when its solution is proven.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy is imported: processor time is one thread's

import sympy  # noqa: E402
from sympy import E, Eq, Function, Rational, Symbol, cos, exp, log, sin, sqrt  # noqa: E402

x, y, z = Symbol("x"), Symbol("y"), Symbol("z")
f, g, u = Function("f"), Function("g"), Function("u")
Y, G = f(x), g(x)
D = Y.diff(x)
D2 = Y.diff(x, 2)


def slope(at: Any) -> Any:
    """f'(at)"""
    return D.subs(x, at)


def faces(solution: Any, variables: tuple[Any, ...]) -> dict[Any, Any]:
    """Dirichlet values of a solution on all faces of the unit box."""
    values = {}
    for variable in variables:
        for side in (0, 1):
            place = [sympy.Integer(side) if v == variable else v for v in variables]
            values[u(*place)] = solution.subs(variable, side)
    return values


def elliptic(right: Any, solution: Any, *, nonlinear: Any = 0, variables: tuple[Any, ...] = (x, y)) -> dict[str, Any]:
    """A Laplacian of u, plus a term in u, with the values of its solution on the unit box."""
    unknown = u(*variables)
    laplacian = sum(unknown.diff(v, 2) for v in variables)
    equation = Eq(laplacian + (nonlinear(unknown) if callable(nonlinear) else nonlinear), right)
    return dict(equation=equation, function=unknown, ics=faces(solution, variables), domain=[(0, 1)] * len(variables))


def ordinary(equation: Any, ics: dict[Any, Any], domain: tuple[Any, Any]) -> dict[str, Any]:
    return dict(equation=equation, function=Y, ics=ics, domain=domain)


def poisson(solution: Any, domain: tuple[Any, Any]) -> dict[str, Any]:
    """f'' of a solution, and its values at both ends."""
    low, high = map(sympy.sympify, domain)
    ends = {f(low): solution.subs(x, low), f(high): solution.subs(x, high)}
    return ordinary(Eq(D2, solution.diff(x, 2)), ends, domain)


tenth, fifth = Rational(1, 10), Rational(1, 5)
damped = Eq(D2, -D / 5 - Y - exp(-x / 5) * cos(x) / 5)
ORDINARY = {
    "ODE1": ordinary(Eq(D, (2 * x - Y) / x), {f(tenth): Rational(201, 10)}, (tenth, 1)),
    "ODE2": ordinary(Eq(D, (1 - Y * cos(x)) / sin(x)), {f(tenth): Rational(21, 10) / sin(tenth)}, (tenth, 1)),
    "ODE3": ordinary(Eq(D, -Y / 5 + exp(-x / 5) * cos(x)), {f(0): 0}, (0, 1)),
    "ODE4": ordinary(Eq(D2, -100 * Y), {f(0): 0, slope(0): 10}, (0, 1)),
    "ODE5": ordinary(Eq(D2, 6 * D - 9 * Y), {f(0): 0, slope(0): 2}, (0, 1)),
    "ODE6": ordinary(damped, {f(0): 0, slope(0): 1}, (0, 2)),
    "ODE7": ordinary(Eq(D2, -100 * Y), {f(0): 0, f(1): sin(10)}, (0, 1)),
    "ODE8": ordinary(Eq(x * D2 + (1 - x) * D + Y, 0), {f(0): 1, f(1): 0}, (0, 1)),
    "ODE9": ordinary(damped, {f(0): 0, f(1): exp(-fifth) * sin(1)}, (0, 1)),
    "NL1": ordinary(Eq(D, 1 / (2 * Y)), {f(1): 1}, (1, 4)),
    "NL2": ordinary(Eq(D**2 + log(Y), cos(x) ** 2 + 2 * cos(x) + 1 + log(x + sin(x))), {f(1): 1 + sin(1)}, (1, 2)),
    "NL3": ordinary(Eq(D2 * D, -4 / x**3), {f(1): 0}, (1, 2)),
    "NL4": ordinary(Eq(x**2 * D2 + (x * D) ** 2 + 1 / log(x), 0), {f(E): 0, slope(E): 1 / E}, (E, 2 * E)),
}
SYSTEMS = {
    "SODE1": dict(
        equation=[
            Eq(D, cos(x) + Y**2 + G - x**2 - sin(x) ** 2),
            Eq(G.diff(x), 2 * x - x**2 * sin(x) + Y * G),
        ],
        function=[Y, G],
        ics={f(0): 0, g(0): 0},
        domain=(0, 1),
    ),
    "SODE2": dict(
        equation=[Eq(D, (cos(x) - sin(x)) / G), Eq(G.diff(x), Y * G + exp(x) - sin(x))],
        function=[Y, G],
        ics={f(0): 0, g(0): 1},
        domain=(0, 1),
    ),
}
square = 1 + x**2 + y**2
PARTIAL = {
    "PDE1": elliptic(exp(-x) * (x - 2 + y**3 + 6 * y), (x + y**3) * exp(-x)),
    "PDE2": elliptic(0, sin(x) * cos(y), nonlinear=lambda v: 2 * v),
    "PDE3": elliptic(4, x**2 + y**2 + x + y + 1),
    "PDE4": elliptic(0, sin(x * y), nonlinear=lambda v: (x**2 + y**2) * v),
    "PDE5": elliptic((x - 2) * exp(-x) + x * exp(-y), x * (exp(-x) + exp(-y))),
    "PDE6": elliptic(square + 4 / square**2, log(square), nonlinear=exp),
    "PDE7": elliptic(6, x**2 + y**2 + z**2, variables=(x, y, z)),
}
NGUYEN = (
    x**3 + x**2 + x,
    x**4 + x**3 + x**2 + x,
    x**5 + x**4 + x**3 + x**2 + x,
    x**6 + x**5 + x**4 + x**3 + x**2 + x,
    sin(x**2) * cos(x) - 1,
    sin(x) + sin(x + x**2),
    log(x + 1) + log(x**2 + 1),
    sqrt(x),
)
POISSON = {
    f"Poisson{k}": poisson(solution, (-1, 1) if k < 7 else (0, 2) if k == 7 else (1, 4))
    for k, solution in enumerate(NGUYEN, start=1)
}
WITHOUT = {
    "Riccati": ordinary(Eq(D, x**2 + Y**2), {f(0): 0}, (0, 1)),
    "Painleve1": ordinary(Eq(D2, 6 * Y**2 + x), {f(0): 0, slope(0): 1}, (0, 1)),
    "VanDerPol": ordinary(Eq(D2, (1 - Y**2) * D - Y), {f(0): 2, slope(0): 0}, (0, 6)),
    "SineOfProduct": ordinary(Eq(D, sin(x * Y)), {f(0): 1}, (0, 3)),
    "ThomasFermi": ordinary(Eq(D2, Y * sqrt(Y) / sqrt(x)), {f(1): 1, f(3): Rational(1, 5)}, (1, 3)),
}
GROUPS = {
    "ordinary": ORDINARY,
    "systems": SYSTEMS,
    "partial": PARTIAL,
    "Poisson": POISSON,
    "without": WITHOUT,
}


def run(name: str, problem: dict[str, Any], seconds: float, seed: int) -> dict[str, Any]:
    """One problem: whether it was proven, what was found and what it cost."""
    import gmeql

    options = dict(problem)
    equation, function = options.pop("equation"), options.pop("function")
    begun, wall = time.process_time(), time.monotonic()
    found = gmeql.solve(equation, function, **options, max_time=seconds, random_state=seed, n_jobs=1)
    return {
        "problem": name,
        "seed": seed,
        "proven": found.proven,
        "processor_seconds": round(time.process_time() - begun, 2),
        "seconds": round(time.monotonic() - wall, 2),
        "candidates": found.candidates,
        "residual": found.best.residual,
        "misfit": found.best.misfit,
        "formula": str(found.best),
        "verdict": found.best.verdict,
    }


def main() -> None:
    """Run the chosen problems and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", help="names or groups, with commas between; default all")
    parser.add_argument("--seconds", type=float, default=60.0, help="time for one problem")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write the records there, one line each")
    arguments = parser.parse_args()
    known = {name: problem for group in GROUPS.values() for name, problem in group.items()}
    chosen = list(known)
    if arguments.problems:
        chosen = [n for word in arguments.problems.split(",") for n in (GROUPS.get(word) or {word: None})]
        unknown = [name for name in chosen if name not in known]
        if unknown:
            parser.error(
                f"no problem or group {unknown[0]!r}; groups: {', '.join(GROUPS)}; problems: {', '.join(known)}"
            )
    import gmeql

    gmeql.solve(Eq(D, Y), Y, ics={f(0): 1}, max_candidates=1000, random_state=0, n_jobs=1)  # compiles the kernels, once
    records = []
    print(f"{'problem':<14} {'proven':<7} {'cpu s':>6} {'candidates':>10} {'residual':>9}  formula")
    for name in chosen:
        record = run(name, known[name], arguments.seconds, arguments.seed)
        records.append(record)
        print(
            f"{name:<14} {'yes' if record['proven'] else 'no':<7} {record['processor_seconds']:>6.1f} "
            f"{record['candidates']:>10} {record['residual']:>9.1e}  {record['formula']}",
            flush=True,
        )
    for group, problems in GROUPS.items():
        of_group = [r for r in records if r["problem"] in problems]
        if of_group:
            print(f"{group}: {sum(r['proven'] for r in of_group)} of {len(of_group)} proven")
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")


if __name__ == "__main__":
    main()
