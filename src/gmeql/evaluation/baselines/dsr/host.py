"""Rewards on the host, through the library's compiled constant fitter; tokens as expressions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gmeql import fitters
from gmeql.evaluation.baselines.dsr.config import DSRConfig, Library
from gmeql.evaluation.baselines.dsr.policy import SampledTexts
from gmeql.evaluation.baselines.refitting import mean_absolute_error
from gmeql.evaluation.baselines.tasks import Task
from gmeql.fitters import programs
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable


def expression_of(tokens: Any, constants: Any, names: tuple[str, ...], library: Library) -> Expression:
    """The expression of one prefix text; constants in the order of their tokens."""
    stack: list[Any] = []
    written = [int(t) for t in tokens if int(t) != library.empty]
    left = [float(c) for c in constants][: sum(t == library.constant for t in written)]
    for token in reversed(written):
        if token == library.constant:
            stack.append(Constant(left.pop()))
        elif library.arity[token] == 0:
            stack.append(Variable(token - library.first_variable))
        else:
            args = tuple(stack.pop() for _ in range(library.arity[token]))
            stack.append(Call(library.names[token], args))
    return Expression(stack.pop(), names)


class HostJudge:
    """Rewards through the library's compiled constant fitter; every different expression is fitted once."""

    def __init__(self, tasks: Sequence[Task], config: DSRConfig, library: Library) -> None:
        self.tasks, self.config, self.library = tasks, config, library
        self.known: list[dict[bytes, tuple[float, float, np.ndarray]]] = [{} for _ in tasks]

    def __call__(self, batch: SampledTexts) -> tuple[np.ndarray, ...]:
        all_tokens = np.asarray(batch.tokens)  # [T, L, B]
        rewards = np.zeros((len(self.tasks), all_tokens.shape[2]))
        best: list[tuple[float, float, np.ndarray, np.ndarray]] = []
        for t, task in enumerate(self.tasks):
            columns = all_tokens[t].T.astype(np.int16)
            unique, inverse = np.unique(columns, axis=0, return_inverse=True)
            new = [row for row in unique if row.tobytes() not in self.known[t]]
            for row, found in zip(new, self._fit(task, new), strict=True):
                self.known[t][row.tobytes()] = found
            scored = [self.known[t][row.tobytes()] for row in unique]
            values = np.array([s[0] for s in scored])
            rewards[t] = values[inverse.reshape(-1)]
            top = int(np.argmax(values))
            best.append((scored[top][0], scored[top][1], unique[top], scored[top][2]))
        width = max((len(b[3]) for b in best), default=0)
        constants = np.stack([np.pad(b[3], (0, width - len(b[3]))) for b in best])
        return (
            rewards,
            np.array([b[0] for b in best]),
            np.array([b[1] for b in best]),
            np.stack([b[2] for b in best]),
            constants,
        )

    def _fit(self, task: Task, rows: list[np.ndarray]) -> list[tuple[float, float, np.ndarray]]:
        names, width = task.names or (), task.X.shape[1]
        expressions = [expression_of(row, [1.0] * self.config.max_constants, names, self.library) for row in rows]
        tapes = [programs.from_expression(e.root, width) for e in expressions]
        inputs, _ = programs.input_slots(task.X)
        deviation = float(np.std(task.y)) or 1.0
        fitted = fitters.fit(tapes, None, inputs, task.y, max_steps=self.config.fit_steps)
        found = []
        for e, tape, own, loss in zip(expressions, tapes, fitted.constants, fitted.losses, strict=True):
            if not np.isfinite(loss):
                found.append((0.0, math.inf, np.asarray(e.constants)))
                continue
            best = programs.replace_constants(e, tape, own)
            reward = 1 / (1 + math.sqrt(max(float(loss), 0.0)) / deviation)
            found.append((reward, mean_absolute_error(best, task.X, task.y), np.asarray(best.constants)))
        return found
