"""Laws of fields read off simulated grids: true terms, and how far their coefficients are off.

    python benchmarks/fields.py [--problems Burgers,KdV] [--noise 0,0.01] [--seed 0] [--json out/fields.jsonl]

Data come from a pseudo-spectral solver (exponential time differencing of fourth order, Kassam and Trefethen 2005) on
periodic domains and from Chebyshev polynomials on others; `tests/benchmarks/test_fields.py` holds both against travelling
waves and exact solutions. Noise is relative to the standard deviation of each field. A problem counts when the chosen law
has exactly the true terms; the error is that of its worst coefficient.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy is imported: processor time is one thread's

import numpy as np  # noqa: E402

Fields = np.ndarray  # [F, *space]


@dataclass(frozen=True)
class Data:
    """Fields [F, *space, T] on a grid."""

    u: np.ndarray
    x: list[np.ndarray]
    t: np.ndarray


def periodic_axis(low: float, high: float, n: int) -> np.ndarray:
    return np.linspace(low, high, n, endpoint=False)


def wave_numbers(axes: list[np.ndarray]) -> list[np.ndarray]:
    """i times the wave numbers along each axis, as grids."""
    lines = [2j * np.pi * np.fft.fftfreq(len(a), a[1] - a[0]) for a in axes]
    return np.meshgrid(*lines, indexing="ij")


def solve_periodic(
    axes: list[np.ndarray],
    times: np.ndarray,
    start: Fields,
    linear: Callable[..., list[np.ndarray]],
    nonlinear: Callable[[Fields, Callable[[np.ndarray, int], np.ndarray]], Fields],
    substeps: int,
) -> Data:
    """u_t = L u + N(u) on a periodic box, by exponential time differencing of fourth order.

    `linear` gives the symbol of L for each field from i times the wave numbers; `nonlinear` gets the fields and a function
    that differentiates along an axis.
    """
    waves = wave_numbers(axes)
    space = tuple(range(-len(axes), 0))
    symbol = np.stack([s + 0 * waves[0] for s in linear(*waves)])
    h = (times[1] - times[0]) / substeps
    circle = np.exp(1j * np.pi * (np.arange(1, 33) - 0.5) / 16)  # contour integrals, where differences would cancel
    L = h * symbol[..., None] + circle
    E, E2 = np.exp(h * symbol), np.exp(h * symbol / 2)
    Q = h * ((np.exp(L / 2) - 1) / L).mean(axis=-1)
    f1 = h * ((-4 - L + np.exp(L) * (4 - 3 * L + L**2)) / L**3).mean(axis=-1)
    f2 = h * ((2 + L + np.exp(L) * (L - 2)) / L**3).mean(axis=-1)
    f3 = h * ((-4 - 3 * L - L**2 + np.exp(L) * (4 - L)) / L**3).mean(axis=-1)
    keep = np.ones_like(waves[0], dtype=bool)
    for wave in waves:  # two thirds of the waves: products of three quarters of them would fold back
        keep &= np.abs(wave) <= np.abs(wave).max() * 2 / 3

    def N(v: np.ndarray) -> np.ndarray:
        fields = np.fft.ifftn(v, axes=space).real

        def along(values: np.ndarray, axis: int) -> np.ndarray:
            return np.fft.ifftn(waves[axis] * np.fft.fftn(values, axes=space), axes=space).real

        return np.fft.fftn(nonlinear(fields, along), axes=space) * keep

    v = np.fft.fftn(start, axes=space)
    kept = [start]
    for _ in times[1:]:
        for _ in range(substeps):
            Nv = N(v)
            a = E2 * v + Q * Nv
            Na = N(a)
            b = E2 * v + Q * Na
            Nb = N(b)
            c = E2 * a + Q * (2 * Nb - Nv)
            v = E * v + Nv * f1 + 2 * (Na + Nb) * f2 + N(c) * f3
        kept.append(np.fft.ifftn(v, axes=space).real)
    return Data(np.stack(kept, axis=-1), axes, times)


def solve_between_ends(
    x: np.ndarray, times: np.ndarray, start: Callable[[np.ndarray], np.ndarray], right: Callable[..., np.ndarray]
) -> Data:
    """u_t = right(x, u, u_x, u_xx) with fixed values at both ends, by Chebyshev polynomials."""
    from numpy.polynomial import chebyshev
    from scipy.integrate import solve_ivp

    n, low, high = 40, x[0], x[-1]
    s = -np.cos(np.pi * np.arange(n) / (n - 1))
    nodes = low + (high - low) * (s + 1) / 2
    V = chebyshev.chebvander(s, n - 1)
    D = chebyshev.chebvander(s, n - 2) @ chebyshev.chebder(np.eye(n)) @ np.linalg.inv(V) * 2 / (high - low)

    def rate(_: float, u: np.ndarray) -> np.ndarray:
        ux = D @ u
        r = right(nodes, u, ux, D @ ux)
        r[[0, -1]] = 0.0
        return r

    found = solve_ivp(rate, (times[0], times[-1]), start(nodes), "Radau", t_eval=times, rtol=1e-9, atol=1e-11)
    to_grid = chebyshev.chebvander((2 * x - low - high) / (high - low), n - 1) @ np.linalg.inv(V)
    return Data((to_grid @ found.y)[None], [x], times)


@dataclass(frozen=True)
class Problem:
    make: Callable[[], Data]
    laws: dict[str, str]


def nothing(u: Fields, along: Any) -> Fields:
    return np.zeros_like(u)


def line(low: float, high: float, n: int, end: float, count: int) -> tuple[list[np.ndarray], np.ndarray]:
    return [periodic_axis(low, high, n)], np.linspace(0, end, count)


def advection() -> Data:
    (x,), t = line(-np.pi, np.pi, 128, 5, 101)
    return solve_periodic([x], t, np.exp(np.sin(x))[None], lambda k: [-0.1 * k], nothing, 1)


def heat() -> Data:
    (x,), t = line(-np.pi, np.pi, 128, 2, 101)
    start = np.exp(np.sin(x)) + np.cos(3 * x)
    return solve_periodic([x], t, start[None], lambda k: [0.2 * k**2], nothing, 1)


def burgers() -> Data:
    (x,), t = line(-8, 8, 256, 10, 101)
    return solve_periodic(
        [x], t, np.exp(-((x + 2) ** 2))[None], lambda k: [0.1 * k**2], lambda u, d: -0.5 * d(u**2, 0), 20
    )


def soliton(x: np.ndarray, speed: float, at: float) -> np.ndarray:
    return speed / 2 / np.cosh(np.sqrt(speed) * (x - at) / 2) ** 2


def kdv() -> Data:
    (x,), t = line(-20, 20, 256, 4, 161)
    start = soliton(x, 4, -8) + soliton(x, 1.5, 0)
    return solve_periodic([x], t, start[None], lambda k: [-(k**3)], lambda u, d: -3 * d(u**2, 0), 40)


def kdv_small() -> Data:
    (x,), t = line(-1, 1, 256, 1, 201)
    return solve_periodic(
        [x], t, np.cos(np.pi * x)[None], lambda k: [-0.0025 * k**3], lambda u, d: -0.5 * d(u**2, 0), 40
    )


def kuramoto_sivashinsky() -> Data:
    (x,), t = line(0, 32 * np.pi, 256, 150, 601)
    start = np.cos(x / 16) * (1 + np.sin(x / 16))
    data = solve_periodic([x], t, start[None], lambda k: [-(k**2) - k**4], lambda u, d: -0.5 * d(u**2, 0), 5)
    return Data(data.u[..., 200:], data.x, data.t[200:])


def chafee_infante() -> Data:
    (x,), t = line(0, 2 * np.pi, 128, 1, 201)
    start = 0.9 * np.sin(x) + 0.5 * np.cos(2 * x) - 0.2
    return solve_periodic([x], t, start[None], lambda k: [k**2 - 1], lambda u, d: u**3, 10)


def allen_cahn() -> Data:
    (x,), t = line(-1, 1, 256, 1, 201)
    return solve_periodic(
        [x], t, (x**2 * np.cos(np.pi * x))[None], lambda k: [1e-4 * k**2 + 5], lambda u, d: -5 * u**3, 5
    )


def divided() -> Data:
    return solve_between_ends(
        np.linspace(1, 2, 101), np.linspace(0, 1, 201), lambda x: -np.sin(np.pi * x),
        lambda x, u, ux, uxx: -ux / x + 0.25 * uxx,
    )  # fmt: skip


def compound() -> Data:
    (x,), t = line(0, 2 * np.pi, 128, 1, 201)
    return solve_periodic(
        [x], t, (1.5 + np.sin(x) + 0.3 * np.cos(2 * x))[None], lambda k: [0 * k],
        lambda u, d: d(d(0.5 * u**2, 0), 0), 60,
    )  # fmt: skip


def advection_diffusion() -> Data:
    x, y = periodic_axis(0, 2 * np.pi, 40), periodic_axis(0, 2 * np.pi, 40)
    X, Y = np.meshgrid(x, y, indexing="ij")
    start = np.exp(np.sin(X) + np.cos(Y)) + np.sin(2 * X + Y)
    return solve_periodic(
        [x, y], np.linspace(0, 1, 61), start[None], lambda k, l: [0.25 * k + 0.5 * l + 0.5 * (k**2 + l**2)], nothing, 1
    )


def reaction_diffusion() -> Data:
    x = periodic_axis(-10, 10, 64)
    X, Y = np.meshgrid(x, x, indexing="ij")
    radius, angle = np.sqrt(X**2 + Y**2), np.angle(X + 1j * Y)
    start = np.stack([np.tanh(radius) * np.cos(angle - radius), np.tanh(radius) * np.sin(angle - radius)])

    def reaction(w: Fields, d: Any) -> Fields:
        u, v = w
        a = u**2 + v**2
        return np.stack([-a * u + a * v, -a * u - a * v])

    return solve_periodic(
        [x, x], np.linspace(0, 5, 101), start, lambda k, l: [0.1 * (k**2 + l**2) + 1] * 2, reaction, 4
    )


PROBLEMS = {
    "advection": Problem(advection, {"u": "-0.1*u_x"}),
    "heat": Problem(heat, {"u": "0.2*u_xx"}),
    "Burgers": Problem(burgers, {"u": "-u*u_x + 0.1*u_xx"}),
    "KdV": Problem(kdv, {"u": "-6*u*u_x - u_xxx"}),
    "KdV-small": Problem(kdv_small, {"u": "-u*u_x - 0.0025*u_xxx"}),
    "KS": Problem(kuramoto_sivashinsky, {"u": "-u*u_x - u_xx - u_xxxx"}),
    "Chafee-Infante": Problem(chafee_infante, {"u": "u_xx - u + u**3"}),
    "Allen-Cahn": Problem(allen_cahn, {"u": "0.0001*u_xx + 5*u - 5*u**3"}),
    "divided": Problem(divided, {"u": "-u_x/x + 0.25*u_xx"}),
    "compound": Problem(compound, {"u": "u*u_xx + u_x**2"}),
    "adv-diff": Problem(advection_diffusion, {"u": "0.25*u_x + 0.5*u_y + 0.5*u_xx + 0.5*u_yy"}),
    "lambda-omega": Problem(
        reaction_diffusion,
        {
            "u": "0.1*u_xx + 0.1*u_yy + u - u**3 - u*v**2 + u**2*v + v**3",
            "v": "0.1*v_xx + 0.1*v_yy + v - v**3 - u**2*v - u*v**2 - u**3",
        },
    ),
}


def with_noise(data: Data, share: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    spread = data.u.std(axis=tuple(range(1, data.u.ndim)), keepdims=True)
    return data.u + share * spread * rng.standard_normal(data.u.shape)


def compare(found: Any, truth: str, names: tuple[str, ...]) -> tuple[bool, float]:
    """Whether a law has exactly the true terms, and the largest relative error of their coefficients."""
    from gmeql.formula.parsing import parse_formula

    def parts(form: Any) -> dict[str, float]:
        expanded = form.expand().as_coefficients_dict()
        return {str(term): float(value) for term, value in expanded.items()}

    true, seen = parts(parse_formula(truth, names)), parts(found.sympy())
    if set(true) != set(seen):
        return False, float("nan")
    return True, max(abs(seen[term] / value - 1) for term, value in true.items())


def run(name: str, noise: float, seed: int) -> dict[str, Any]:
    from gmeql import GMEQLField

    problem = PROBLEMS[name]
    data = problem.make()
    values = with_noise(data, noise, seed)
    begun = time.process_time()
    model = GMEQLField(random_state=seed, n_jobs=1)
    model.fit(list(values) if len(values) > 1 else values[0], x=data.x, t=data.t)
    spent = time.process_time() - begun
    judged = [compare(e, problem.laws[n], model.column_names_) for n, e in zip(model.field_names_, model.equations_)]
    return {
        "problem": name,
        "noise": noise,
        "seed": seed,
        "true_terms": all(same for same, _ in judged),
        "coefficient_error": max(error for _, error in judged),
        "processor_seconds": round(spent, 1),
        "laws": str(model),
    }


def main() -> None:
    """Run the chosen problems and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", help="names with commas between; default all")
    parser.add_argument("--noise", default="0,0.01", help="levels of noise, with commas between")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write the records there, one line each")
    arguments = parser.parse_args()
    names = arguments.problems.split(",") if arguments.problems else list(PROBLEMS)
    unknown = [name for name in names if name not in PROBLEMS]
    if unknown:
        parser.error(f"no problem {unknown[0]!r}; there are: {', '.join(PROBLEMS)}")
    records = []
    print(f"{'problem':<15} {'noise':>6} {'true':<5} {'worst':>8} {'cpu s':>6}  laws")
    for name in names:
        for noise in map(float, arguments.noise.split(",")):
            record = run(name, noise, arguments.seed)
            records.append(record)
            print(
                f"{name:<15} {noise:>6g} {'yes' if record['true_terms'] else 'no':<5} {record['coefficient_error']:>8.1%} "
                f"{record['processor_seconds']:>6.1f}  {'; '.join(record['laws'].splitlines())}",
                flush=True,
            )
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")


if __name__ == "__main__":
    main()
