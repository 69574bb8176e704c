"""`gmeql classify`: formulas for the chances of a column's classes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gmeql.cli.exits import USAGE, Exit, say
from gmeql.cli.options import (
    CandidatesOption,
    DataArgument,
    FolderOption,
    JobsOption,
    JsonOption,
    QuietOption,
    SeedOption,
    typed_command,
)

if TYPE_CHECKING:
    from gmeql.estimator import GMEQLClassifier
    from gmeql.tables.read import Table, Training


MAX_CLASSES = 50
"""Each takes a search of its own."""


def classify(
    data: DataArgument,
    target: Annotated[str, typer.Option("--target", "-t", help="Column of classes: words or numbers.")],
    max_time: Annotated[float | None, typer.Option(help="Seconds to search. (default: 30)")] = None,
    max_candidates: CandidatesOption = None,
    seed: SeedOption = 0,
    functions: Annotated[str | None, typer.Option(help="What a formula may use, as in +,-,*,/,sin,exp.")] = None,
    columns: Annotated[str | None, typer.Option(help="Use only these columns, as in a,b,c.")] = None,
    drop: Annotated[str | None, typer.Option(help="Leave these columns out.")] = None,
    weights: Annotated[str | None, typer.Option(help="Column of row weights.")] = None,
    max_complexity: Annotated[int | None, typer.Option(help="No formula larger than this.")] = None,
    jobs: JobsOption = None,
    out: FolderOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find formulas for the chances of the classes of a column.

    Of two classes one formula is the logit of the second's chance; of more, each class has one against the rest. Writes a
    folder with model.json (for gmeql predict) and a report for each formula.
    """
    from gmeql.cli.present import print_json
    from gmeql.estimator import GMEQLClassifier
    from gmeql.model.targets import as_list
    from gmeql.runs.execute import frame_of
    from gmeql.runs.folder import default_folder
    from gmeql.runs.settings import DEFAULT_SECONDS, split_names
    from gmeql.tables.read import read

    table = read(data)
    chosen = {
        "columns": None if columns is None else split_names(columns),
        "drop": () if drop is None else split_names(drop),
    }
    training, labels = _classes(table, target, weights=weights, **chosen)
    if max_time is None and max_candidates is None:
        max_time = DEFAULT_SECONDS
    model = GMEQLClassifier(
        functions=None if functions is None else list(split_names(functions)),
        max_time=max_time,
        max_candidates=max_candidates,
        max_complexity=max_complexity,
        random_state=seed,
        n_jobs=jobs,
        verbose=0 if quiet else 1,
    )
    try:
        model.fit(frame_of(training), labels, sample_weight=training.weights)
    except ValueError as error:
        raise Exit(USAGE, f"gmeql: {table.source}: {error}") from None
    folder = Path(out) if out else default_folder("" if data == "-" else data)
    pages = _write(model, folder, training, labels)
    if as_json:
        return print_json(_record(model, training, labels, folder, pages))
    for label, expression in zip(_explained(model), as_list(model.expression_), strict=True):
        print(f"logit of {target} is {label} = {expression}")
    if not quiet:
        right = float((model.predict(frame_of(training)) == labels).mean())
        say(f"{right:.1%} of {len(labels):,} rows are told right")
        say(f"model   {folder / 'model.json'}")
        for page in pages:
            say(f"report  {page}")
    return None


def _classes(table: Table, target: str, **options: Any) -> tuple[Training, Any]:
    """Training rows with class numbers as their target, and the class of each as text."""
    from dataclasses import replace

    import numpy as np

    from gmeql.tables.column import TableColumn

    words = np.array(table.column(target, "--target").words())
    known = sorted(set(words.tolist()) - {""})
    if not 2 <= len(known) <= MAX_CLASSES:
        raise Exit(
            USAGE,
            f"gmeql: {table.source}: column {target!r} holds {len(known)} classes; 2 to {MAX_CLASSES} can be told apart",
        )
    codes = np.array([float(known.index(word)) if word else np.nan for word in words])
    coded = tuple(TableColumn(c.name, codes, "number") if c.name == target else c for c in table.columns)
    training = replace(table, columns=coded).select(target, **options)
    return training, np.array(known, dtype=object)[training.y.astype(int)]


def _explained(model: GMEQLClassifier) -> list[str]:
    """The class that each formula is the logit of."""
    classes = [str(label) for label in model.classes_]
    return classes[1:] if len(classes) == 2 else classes


def _write(model: GMEQLClassifier, folder: Path, training: Training, labels: Any) -> list[Path]:
    """The model, and a report for each formula."""
    from dataclasses import replace

    from gmeql import report
    from gmeql._version import versions
    from gmeql.model.storage import write_atomic
    from gmeql.model.targets import as_list

    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "model.json")
    told = _explained(model)
    pages = []
    fronts, picks = as_list(model.front_), as_list(model.selected_index_)
    for number, (label, front, selected) in enumerate(zip(told, fronts, picks, strict=True)):
        page = report.build(
            front=front,
            selected=selected,
            training=replace(
                training, y=(labels == label).astype(float), target=f"logit of {training.target} is {label}"
            ),
            settings={"loss": "logistic", "method": "fitted"},
            versions=versions(),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            command=typed_command(),
        )
        path = folder / ("report.html" if len(told) == 1 else f"report-{number + 1}.html")
        write_atomic(path, page.encode())
        pages.append(path)
    return pages


def _record(model: GMEQLClassifier, training: Training, labels: Any, folder: Path, pages: list[Path]) -> dict[str, Any]:
    from gmeql.cli.present import formula_record
    from gmeql.model.targets import as_list
    from gmeql.runs.execute import frame_of

    fronts, picks = as_list(model.front_), as_list(model.selected_index_)
    return {
        "target": training.target,
        "classes": [str(label) for label in model.classes_],
        "formulas": [
            {"class": label} | formula_record(front, k)
            for label, front, k in zip(_explained(model), fronts, picks, strict=True)
        ],
        "right": float((model.predict(frame_of(training)) == labels).mean()),
        "rows": len(labels),
        "candidates": model.candidates_,
        "seconds": round(model.seconds_, 3),
        "model": str(folder / "model.json"),
        "reports": [str(page) for page in pages],
    }
