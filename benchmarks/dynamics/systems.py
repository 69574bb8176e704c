"""Systems to try laws of motion on: textbook ones with constants of ours, and random ones drawn from a grammar.

    python benchmarks/dynamics/systems.py --out out/systems.json                       # 40 of textbooks and 20 random ones
    python benchmarks/dynamics/run.py run out/systems.json --out out/own.jsonl

Cases have the form that `run.py` reads. A random system is kept where both its trajectories stay bounded and move, and
where every term of it matters along the first one: what a trajectory does not show, nobody can find.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node
from gmeql.formula.parsing import parse_tree

DURATION, POINTS = 10.0, 150
STEPS = 200
"""Of the integration by which random systems are looked at."""
LARGEST = 30.0
"""Size of a state beyond which a random system is not kept."""
LEAST_SHARE = 0.15
"""Of the slope's size that a term of a random system has at least along the first trajectory."""
LEAST_MOVE = 0.2
"""Spread of each state of a random system, on both trajectories."""

TEXTBOOK: tuple[tuple[str, list[str], list[list[float]]], ...] = (
    ("logistic growth with harvest", ["0.62*x - 0.05*x**2 - 0.5"], [[2.1], [11.0]]),
    ("Gompertz growth", ["-0.41*x*log(0.07*x)"], [[0.8], [6.0]]),
    ("Allee effect", ["0.35*x**2 - 0.04*x**3 - 0.5*x"], [[2.4], [5.5]]),
    ("charging of a capacitor", ["1.94 - 0.59*x"], [[0.2], [6.1]]),
    ("fall with drag", ["9.8 - 0.021*x**2"], [[1.0], [30.0]]),
    ("growth that saturates", ["1.3*x/(2.1 + x) - 0.17*x"], [[0.4], [9.0]]),
    ("overdamped pendulum", ["0.5 - 1.3*sin(x)"], [[2.4], [-1.5]]),
    ("tank that empties", ["0.9 - 0.8*sqrt(x)"], [[6.0], [0.3]]),
    ("Landau equation", ["0.8*x - 0.37*x**3"], [[0.1], [2.9]]),
    ("gene that activates itself", ["0.15 + 2.2*x**2/(1.5 + x**2) - 0.8*x"], [[0.9], [3.5]]),
    ("two competing species", ["1.9*x - 0.9*x**2 - 1.1*x*y", "1.4*y - 0.6*x*y - 0.7*y**2"], [[0.3, 2.6], [2.2, 0.4]]),
    ("predator and prey", ["1.2*x - 0.55*x*y", "0.4*x*y - 0.95*y"], [[4.0, 1.2], [1.5, 3.5]]),
    ("predator and prey, limited", ["1.3*x - 0.11*x**2 - 0.7*x*y", "0.5*x*y - 0.9*y"], [[3.0, 1.0], [1.0, 2.5]]),
    ("predator that is sated", ["1.2*x - 0.3*x**2 - 1.5*x*y/(1 + x)", "0.9*x*y/(1 + x) - 0.4*y"], [[1.5, 0.6], [3.0, 1.2]]),
    ("pendulum with friction", ["y", "-0.31*y - 1.7*sin(x)"], [[2.0, 0.0], [-1.0, 1.5]]),
    ("damped oscillator", ["y", "-2.3*x - 0.4*y"], [[1.6, 0.2], [-0.5, 2.0]]),
    ("Duffing oscillator", ["y", "0.9*x - 0.7*x**3 - 0.22*y"], [[1.9, 0.3], [-0.4, 1.3]]),
    ("van der Pol oscillator", ["y", "1.3*y - 1.3*x**2*y - x"], [[0.4, 1.1], [2.4, -1.0]]),
    ("FitzHugh-Nagumo", ["x - 0.33*x**3 - y + 0.5", "0.3*x + 0.21 - 0.24*y"], [[-1.0, 1.0], [1.5, -0.5]]),
    ("glider", ["-0.12*x**2 - sin(y)", "x - cos(y)/x"], [[2.1, 0.4], [3.4, -0.9]]),
    ("Brusselator", ["1.2 + x**2*y - 3.6*x", "2.6*x - x**2*y"], [[0.8, 2.0], [2.2, 1.1]]),
    ("Schnakenberg reaction", ["0.17 - x + x**2*y", "0.83 - x**2*y"], [[0.3, 1.5], [1.6, 0.6]]),
    ("glycolysis", ["-x + 0.11*y + x**2*y", "0.62 - 0.11*y - x**2*y"], [[0.5, 2.2], [1.4, 0.7]]),
    ("laser", ["0.6*x*y - 1.1*x", "3.4 - 0.6*x*y - 0.5*y"], [[0.2, 1.0], [3.0, 4.0]]),
    ("epidemic", ["-0.9*x*y", "0.9*x*y - 0.45*y"], [[1.6, 0.04], [1.1, 0.3]]),
    ("two genes that hold each other down", ["2/(1 + y**2) - 0.6*x", "2/(1 + x**2) - 0.8*y"], [[0.3, 1.8], [2.5, 0.2]]),
    ("chemostat", ["0.9 - 0.3*x - 1.2*x*y/(0.8 + x)", "1.2*x*y/(0.8 + x) - 0.3*y"], [[3.0, 0.2], [0.4, 2.5]]),
    ("reactions in a row", ["-0.83*x", "0.83*x - 0.36*y"], [[4.0, 0.1], [1.0, 2.0]]),
    ("love affair", ["-0.3*x + 1.2*y", "-0.9*x + 0.1*y"], [[1.5, 0.5], [-1.0, 2.0]]),
    ("Hopf normal form", ["x - 2.1*y - x**3 - x*y**2", "2.1*x + y - x**2*y - y**3"], [[0.2, 0.1], [-1.6, 0.9]]),
    ("bacterial respiration", ["9.1 - x - x*y/(1 + 0.6*x**2)", "5.2 - x*y/(1 + 0.6*x**2)"], [[1.0, 9.0], [6.5, 3.0]]),
    ("iodine and chlorine dioxide", ["7.4 - x - 4*x*y/(1 + x**2)", "1.7*x - 1.7*x*y/(1 + x**2)"], [[0.9, 1.8], [2.4, 5.0]]),
    ("Lorenz equations, calm", ["-10*x + 10*y", "12*x - y - x*z", "x*y - 2.7*z"], [[1.5, 4.0, 6.0], [-3.0, -6.0, 9.0]]),
    ("Roessler equations", ["-y - z", "x + 0.15*y", "0.2 + x*z - 6*z"], [[2.0, 3.0, 0.3], [-4.0, 1.0, 0.1]]),
    ("rigid body", ["0.8*y*z", "-1.5*x*z", "0.55*x*y"], [[1.2, 0.3, 1.0], [0.5, 1.6, -0.7]]),
    ("Maxwell-Bloch equations", ["-0.7*x + 0.7*y", "-y + x*z", "2.4 - 0.9*z - 0.9*x*y"], [[0.3, 0.2, 1.0], [1.6, 0.9, 0.4]]),
    ("epidemic with recovery", ["-0.8*x*y", "0.8*x*y - 0.5*y", "0.5*y"], [[1.5, 0.05, 0.0], [1.0, 0.2, 0.1]]),
    ("death of a cell", ["0.6 - 0.5*x - 0.4*x*y", "0.4*x*y + 0.2*z - 0.7*y", "0.7*y - 0.3*z"],
     [[2.0, 0.2, 0.1], [0.6, 1.4, 0.8]]),
    ("food chain", ["1.1*x - 0.2*x**2 - 0.5*x*y", "0.4*x*y - 0.3*y - 0.5*y*z", "0.6*y*z - 0.4*z"],
     [[3.0, 1.0, 0.4], [1.2, 1.8, 1.1]]),
    ("epidemic with incubation", ["-0.7*x*z", "0.7*x*z - 0.6*y", "0.6*y - 0.35*z", "0.35*z"],
     [[1.4, 0.1, 0.05, 0.0], [0.9, 0.3, 0.2, 0.1]]),
)  # fmt: skip
"""Title, right sides and two starts."""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--random", type=int, default=20, help="how many random systems")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    cases = [case(f"textbook_{k:02d}", *told) for k, told in enumerate(TEXTBOOK, 1)]
    rng = np.random.default_rng(given.seed)
    cases += [case(f"random_{k:02d}", "drawn from a grammar", *drawn(rng)) for k in range(1, given.random + 1)]
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(cases, indent=1) + "\n", encoding="utf-8")
    print(f"{len(cases)} systems in {given.out}")


def case(name: str, title: str, formulas: list[str], starts: list[list[float]]) -> dict:
    return {
        "name": name, "title": title, "dim": len(formulas), "states": list("xyzw"[: len(formulas)]),
        "formulas": formulas, "init": starts, "t_span": [0, DURATION], "n_times": POINTS,
    }  # fmt: skip


# --- random systems ---------------------------------------------------------------------------------------------------


def drawn(rng: np.random.Generator) -> tuple[list[str], list[list[float]]]:
    """Right sides and two starts of a random system of one to three states."""
    while True:
        size = int(rng.integers(1, 4))
        states = list("xyz"[:size])
        sides = [equation(rng, states, own) for own in states]
        starts = [np.round(rng.uniform(0.2, 3.0, size), 2).tolist() for _ in range(2)]
        if is_told(sides, states, starts):
            return [" + ".join(terms).replace("+ -", "- ") for terms in sides], starts


def equation(rng: np.random.Generator, states: list[str], own: str) -> list[str]:
    """Terms of one right side, none twice, not a constant alone: mostly one that brings the state back, and one to three more."""
    terms = [f"-{constant(rng)}*{own}"] if rng.random() < 0.7 else []
    for _ in range(int(rng.integers(1, 4 if len(states) > 1 else 3))):
        sign = "-" if rng.random() < 0.4 else ""
        a, b = rng.choice(states), rng.choice(states)
        kind = rng.choice(len(KINDS), p=[share for share, _ in KINDS])
        factor = KINDS[kind][1].format(a=a, b=b, c=constant(rng))
        terms.append(f"{sign}{constant(rng)}{factor}")
    told = {*map(structure, terms)}
    return terms if len(told) == len(terms) and told != {""} else equation(rng, states, own)


KINDS: tuple[tuple[float, str], ...] = (
    (0.15, ""), (0.2, "*{a}"), (0.25, "*{a}*{b}"), (0.1, "*{a}**2*{b}"), (0.08, "*{a}/({c} + {a})"),
    (0.05, "*{b}*{a}/({c} + {a})"), (0.07, "*sin({a})"), (0.04, "*cos({a})"), (0.04, "*exp(-{a})"), (0.02, "*log({a})"),
)  # fmt: skip
"""How often a factor is drawn: of the states `a` and `b` and a constant `c`."""


def constant(rng: np.random.Generator) -> str:
    """A number of two digits between 0.2 and 3, small ones as often as large ones."""
    return f"{float(np.exp(rng.uniform(np.log(0.2), np.log(3.0)))):.2g}"


def structure(term: str) -> str:
    """A term without its sign and its coefficient."""
    return term.lstrip("-").partition("*")[2]


def is_told(sides: list[list[str]], states: list[str], starts: list[list[float]]) -> bool:
    """Whether both trajectories stay bounded and move, and each term matters on the first."""
    terms: list[list[Node]] = [[parse_tree(term, states) for term in side] for side in sides]
    path = followed(terms, states, np.array(starts))
    if path is None or path.std(axis=0).min() < LEAST_MOVE:
        return False
    return all(all_matter(side, states, path[:, 0]) for side in terms)


def followed(terms: list[list[Node]], states: list[str], starts: np.ndarray) -> np.ndarray | None:
    """States [T, 2, S] from two starts [2, S] by the method of Runge and Kutta; None where one leaves all bounds."""
    right = [[Expression(term, tuple(states)) for term in side] for side in terms]
    h, now, path = DURATION / STEPS, starts, []

    def slope(at: np.ndarray) -> np.ndarray:
        return np.column_stack([sum(term(at) for term in side) for side in right])

    with np.errstate(all="ignore"):
        for _ in range(STEPS):
            path.append(now)
            a = slope(now)
            b = slope(now + h / 2 * a)
            c = slope(now + h / 2 * b)
            now = now + h / 6 * (a + 2 * b + 2 * c + slope(now + h * c))
            if not (np.abs(now) < LARGEST).all():
                return None
    return np.stack(path)


def all_matter(terms: list[Node], states: list[str], path: np.ndarray) -> bool:
    """Whether every term has a fair share of the slope's size."""
    values = np.column_stack([Expression(term, tuple(states))(path) for term in terms])
    size = np.sqrt(np.mean(values.sum(axis=1) ** 2))
    return bool((np.sqrt(np.mean(values**2, axis=0)) > LEAST_SHARE * size).all())


if __name__ == "__main__":
    main()
