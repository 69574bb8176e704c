"""A stand-in for the regressor that knows b1-b8, so that tests of benchmarks are quick."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import sympy

from gmeql.evaluation.bench import BenchConfig, BenchRecord, run_suite
from gmeql.evaluation.problems import PAPER
from gmeql.formula.canonical import evaluate
from gmeql.formula.parsing import parse_formula


class KnownFormula:
    """An expression that is simply given."""

    complexity = 7

    def __init__(self, text: str, names: list[str]) -> None:
        self.formula, self.names = parse_formula(text, names), names

    def sympy(self) -> sympy.Expr:
        return self.formula

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return np.broadcast_to(evaluate(self.formula, dict(zip(self.names, X.T))), len(X))

    def __str__(self) -> str:
        return str(self.formula)


class Oracle:
    """A regressor that knows b1-b8 by the number of columns and the first target; on seed 1 it fails as told."""

    def __init__(self, config: BenchConfig, seed: int) -> None:
        self.config, self.seed = config, seed

    def fit(self, X: Any, y: np.ndarray) -> Oracle:
        if isinstance(X, np.ndarray):  # the warm-up
            return self
        mark = self.config.options.get("log")
        if mark:
            with open(mark, "a") as file:
                file.write(f"{self.seed}\n")
        columns = {name: X[name].to_numpy() for name in X.columns}
        fitting = [
            text
            for text, width, _, _ in PAPER.values()
            if width == len(columns) and np.allclose(evaluate(parse_formula(text, columns), columns), y, atol=1)
        ]
        failure = self.config.options.get("failure") if self.seed == 1 else None
        if failure == "raise":
            raise RuntimeError("no luck")
        if failure == "die":
            os._exit(9)
        self.candidates_ = 100 + self.seed
        self.expression_ = KnownFormula("x1" if failure == "wrong" else fitting[0], X.columns)
        return self


def oracle(config: BenchConfig, seed: int, threads: int | None) -> Oracle:
    return Oracle(config, seed)


def bench(**settings: Any) -> list[BenchRecord]:
    return run_suite("paper", **{"seeds": 2, "factory": oracle, "problems": ["b1", "b5"]} | settings)
