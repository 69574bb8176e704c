"""Classes of a column in a folder of their own: the rows as a classifier takes them, model, reports.

model.json        the model (`GMEQLClassifier.load`)
report.html       how often each class is told right, the formulas
report-1.html     ... a page for each formula
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmeql._version import versions
from gmeql.model.files.storage import write_atomic
from gmeql.model.targets import as_list
from gmeql.report import build
from gmeql.report.classes import build as build_overview
from gmeql.report.classes import explained
from gmeql.runs.settings import ConfigError
from gmeql.tables.column import TableColumn
from gmeql.tables.table import Table
from gmeql.tables.training import Training

if TYPE_CHECKING:
    from gmeql.estimator import GMEQLClassifier

MOST_CLASSES = 50
"""Each takes a search of its own."""


def class_rows(table: Table, target: str, **options: Any) -> tuple[Training, np.ndarray]:
    """Training rows with class numbers as their target, and the class of each as text; `options` are those of
    `Table.select`."""
    words = np.array(table.column(target, "--target").words())
    known = sorted(set(words.tolist()) - {""})
    if not 2 <= len(known) <= MOST_CLASSES:
        held = f"holds {known[0]!r} alone" if len(known) == 1 else f"holds {len(known) or 'no'} classes"
        raise ConfigError(f"{table.source}: column {target!r} {held}; 2 to {MOST_CLASSES} classes can be told apart")
    if len(known) == np.count_nonzero(words != ""):
        raise ConfigError(
            f"{table.source}: every row of column {target!r} is a class of its own; choose another --target"
        )
    codes = np.array([float(known.index(word)) if word else np.nan for word in words])
    coded = tuple(TableColumn(c.name, codes, "number") if c.name == target else c for c in table.columns)
    training = replace(table, columns=coded).select(target, **options)
    return training, np.array(known, dtype=object)[training.y.astype(int)]


def write_classes(
    model: GMEQLClassifier, folder: Path, training: Training, labels: np.ndarray, X: Any, command: str
) -> list[Path]:
    """The model, a page for each formula and one about all classes, which comes first; `X` is what the model was fitted
    to."""
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "model.json")
    created = datetime.now(UTC).isoformat(timespec="seconds")
    told, fronts, picks = explained(model), as_list(model.front_), as_list(model.selected_index_)
    names: Sequence[str] = [f"report-{number}.html" for number in range(1, len(told) + 1)]
    for name, label, front, selected in zip(names, told, fronts, picks, strict=True):
        is_class = replace(training, y=(labels == label).astype(float), target=f"logit of {training.target} is {label}")
        page = build(
            front=front,
            selected=selected,
            training=is_class,
            settings={"loss": "logistic", "method": "fitted"},
            versions=versions(),
            created=created,
            command=command,
        )
        write_atomic(folder / name, page.encode())
    overview = build_overview(
        model, X, labels, target=training.target, source=training.source, pages=names, created=created, command=command
    )
    write_atomic(folder / "report.html", overview.encode())
    return [folder / name for name in ("report.html", *names)]
