"""One cell: judged with its noise, an error that is not finite is null."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gmeql.evaluation.bench import BenchConfig, RecordFile, run_cell
from gmeql.evaluation.problems import paper_problem
from oracle import KnownFormula, Oracle, bench, oracle


def test_a_wrong_formula_is_not_solved() -> None:
    wrong = bench(options={"failure": "wrong"}, problems=["b1"])[1]
    assert wrong.solved is False and wrong.reason.startswith("error") and wrong.relative_rmse > 0.1


def test_noise_is_passed_to_the_judge() -> None:
    config = BenchConfig(noise=0.01)
    record = run_cell(paper_problem("b2"), 0, config, factory=oracle)
    assert record.solved and record.reason == "the truth's structure" and record.noise == 0.01


def nowhere_finite(config: BenchConfig, seed: int, threads: int | None) -> Any:
    class Model(Oracle):
        def fit(self, X: Any, y: np.ndarray) -> Oracle:
            self.expression_ = KnownFormula("log(-1 - x1)", X.columns)
            return self

    return Model(config, seed)


def test_an_infinite_error_is_written_as_null(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "records.jsonl")
    record = run_cell(paper_problem("b1"), 1, BenchConfig(options={"failure": "nowhere"}), factory=nowhere_finite)
    assert record.relative_rmse is None and record.solved is False and not record.error
    file.append(record)
    assert file.read() == [record]
