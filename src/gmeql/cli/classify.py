"""`gmeql classify`: formulas for the chances of a column's classes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gmeql.cli.exits import INTERRUPTED, USAGE, Exit, say
from gmeql.cli.fit import say_notes
from gmeql.cli.options import (
    CandidatesOption,
    ComplexityOption,
    DataArgument,
    FolderOption,
    JobsOption,
    JsonOption,
    QuietOption,
    Reading,
    SeedOption,
    cell_options,
    named_functions,
    read_table,
    reads_table,
    seconds_option,
    typed_command,
)

if TYPE_CHECKING:
    from gmeql.estimator import GMEQLClassifier
    from gmeql.tables.training import Training


@reads_table()
def classify(
    data: DataArgument,
    reading: Reading,
    target: Annotated[str, typer.Option("--target", "-t", help="Column of classes: words or numbers.")],
    max_time: Annotated[float | None, seconds_option("Seconds to search. (default: 30)")] = None,
    max_candidates: CandidatesOption = None,
    seed: SeedOption = 0,
    functions: Annotated[str | None, typer.Option(help="What a formula may use, as in +,-,*,/,sin,exp.")] = None,
    columns: Annotated[str | None, typer.Option(help="Use only these columns, as in a,b,c.")] = None,
    drop: Annotated[str | None, typer.Option(help="Leave these columns out.")] = None,
    weights: Annotated[str | None, typer.Option(help="Column of row weights.")] = None,
    max_complexity: ComplexityOption = None,
    jobs: JobsOption = None,
    out: FolderOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find formulas for the chances of the classes of a column.

    Of two classes one formula is the logit of the second's chance; of more, each class has one against the rest. Writes a
    folder with model.json (for gmeql predict), report.html and a report for each formula. Ctrl-C ends it with what was
    found.
    """
    from gmeql.runs.settings import DEFAULT_SECONDS, split_names

    table = read_table(data, reading)
    from gmeql.cli.present import print_json  # what follows takes a while to import; mistakes are told before
    from gmeql.model.targets import as_list
    from gmeql.report.classes import explained
    from gmeql.runs.classes import class_rows, write_classes
    from gmeql.runs.execute import frame_of
    from gmeql.runs.folder import default_folder

    chosen = {
        "columns": None if columns is None else split_names(columns),
        "drop": () if drop is None else split_names(drop),
    } | cell_options(reading)
    training, labels = class_rows(table, target, weights=weights, **chosen)
    say_notes(training, quiet)
    from gmeql.estimator import GMEQLClassifier
    from gmeql.model.fit.fitting import InterruptedWarning

    if max_time is None and max_candidates is None:
        max_time = DEFAULT_SECONDS
    model = GMEQLClassifier(
        functions=named_functions(functions),
        max_time=max_time,
        max_candidates=max_candidates,
        max_complexity=max_complexity,
        random_state=seed,
        n_jobs=jobs,
        verbose=0 if quiet else 1,
    )
    X = frame_of(training)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", InterruptedWarning)
        try:
            model.fit(X, labels, sample_weight=training.weights)
        except ValueError as error:
            raise Exit(USAGE, f"gmeql: {table.source}: {error}") from None
    folder = Path(out) if out else default_folder("" if data == "-" else data)
    pages = write_classes(model, folder, training, labels, X, typed_command())
    if as_json:
        print_json(_record(model, training, labels, folder, pages))
    else:
        for label, expression in zip(explained(model), as_list(model.expression_), strict=True):
            print(f"logit of {target} is {label} = {expression}")
    if not quiet:
        right = float((model.predict(X) == labels).mean())
        largest = max(model.classes_, key=lambda label: int((labels == label).sum()))
        share = float((labels == largest).mean())
        say(f"{right:.1%} of {len(labels):,} rows are told right; {str(largest)!r} for every row would be {share:.1%}")
        say(f"model   {folder / 'model.json'}")
        say(f"report  {pages[0]}")
    if any(issubclass(one.category, InterruptedWarning) for one in caught):
        raise Exit(INTERRUPTED, "interrupted: what was found is saved")


def _record(model: GMEQLClassifier, training: Training, labels: Any, folder: Path, pages: list[Path]) -> dict[str, Any]:
    from gmeql.cli.present import formula_record
    from gmeql.model.targets import as_list
    from gmeql.report.classes import explained
    from gmeql.runs.execute import frame_of

    fronts, picks = as_list(model.front_), as_list(model.selected_index_)
    return {
        "target": training.target,
        "classes": [str(label) for label in model.classes_],
        "formulas": [
            {"class": label} | formula_record(front, k)
            for label, front, k in zip(explained(model), fronts, picks, strict=True)
        ],
        "right": float((model.predict(frame_of(training)) == labels).mean()),
        "rows": len(labels),
        "candidates": model.candidates_,
        "seconds": round(model.seconds_, 3),
        "model": str(folder / "model.json"),
        "reports": [str(page) for page in pages],
    }
