"""Running a fit in a run folder: the one way the command line and the web page both take.

`execute` searches from the newest checkpoint, logs, can be stopped, and writes model, front and report.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmeql.model.files.storage import StorageError
from gmeql.runs.folder import Run
from gmeql.runs.knowing import errors_of, knowledge_of, knowledge_options
from gmeql.runs.records import (
    ProgressLog,
    alternative_records,
    alternatives_csv,
    front_csv,
    groups_csv,
    member_record,
)
from gmeql.runs.settings import ConfigError, FitSettings, reproduce_command
from gmeql.runs.steering import Steering, merge, standard_functions
from gmeql.search.events import reason_text
from gmeql.tables.training import Training

if TYPE_CHECKING:
    from gmeql.estimator import GMEQLRegressor
    from gmeql.knowledge.knowledge import Knowledge
    from gmeql.model.pareto.front import Front
    from gmeql.search.events import Member, Progress
    from gmeql.search.polish.scoring import JudgedRows

CHECKPOINT_SECONDS = 5.0  # a killed process loses at most this much of its search


class Stop(threading.Event):
    """A wish to end a run after its step. With `for_later` set, the run stays queued and its report is not written."""

    def __init__(self) -> None:
        super().__init__()
        self.for_later = False
        self._saving = threading.Lock()

    def claim_saving(self) -> bool:
        """Whether the caller is the first to save the run's results; who comes later leaves what is there alone."""
        return self._saving.acquire(blocking=False)


@dataclass(frozen=True)
class RunOutcome:
    """What became of a run: a fitted model or None, how it ended, and where the report lies."""

    model: GMEQLRegressor | None
    state: str
    reason: str
    report: Path | None = None


def execute(
    run: Run,
    *,
    training: Training | None = None,
    settings: FitSettings | None = None,
    on_progress: Callable[[Progress], Any] | None = None,
    on_found: Callable[[RunOutcome], Any] | None = None,
    on_saved: Callable[[RunOutcome], Any] | None = None,
    stop: Stop | None = None,
) -> RunOutcome:
    """Fit the run's data, from its newest checkpoint if there is one, and write model, front and report.

    `stop` ends the search after the step it is in; what was found is kept. `on_found` is called with the model before
    anything of it is written, which may fail; `on_saved` when model and front are on disk, before the report, which may
    take long. `settings` may change the budget of a resumed run. Raises `StorageError` when the folder cannot be read or
    written; any other error of the fit is noted in run.json and raised again.
    """
    training = training if training is not None else run.training()
    settings = settings if settings is not None else run.settings()
    stop = stop if stop is not None else Stop()
    steering = Steering.of(settings, training.names)
    searched = steering.extend(training)
    run.update(state="running", reason="", settings=settings.to_dict(), pid=os.getpid())
    known = merge(_known_members(run, training), steering, training.names)
    rows = _judged(training) if steering.active or known else None
    last: list[Progress] = []
    with ProgressLog(run.log_path) as log:

        def watch(progress: Progress) -> bool:
            progress = _written_out(progress, steering, training, known, rows)
            last[:] = [progress]
            log.add(progress)
            if on_progress is not None:
                on_progress(progress)
            return stop.is_set()

        try:
            model = _fit(run, searched, settings, steering, watch)
        except Exception as error:
            from gmeql.model.fit.fitting import NoFormulaError

            run.update(state="failed", reason=f"{type(error).__name__}: {error}"[:500])
            if isinstance(error, ValueError) and last and not any(np.isfinite(m.loss) for m in last[0].front):
                return RunOutcome(None, "failed", "no formula was found")
            if isinstance(error, NoFormulaError):
                return RunOutcome(None, "failed", str(error))
            raise
    if not stop.claim_saving():
        return RunOutcome(None, "stopped", "stopped")
    if steering.active or known:
        model = _steered_model(run, model, training, settings, steering, known)
    state = "stopped" if stop.is_set() else "done"
    reason = "stopped" if stop.is_set() else reason_text(last[0].reason if last else "")
    saved = RunOutcome(model, state, reason)
    if on_found is not None:
        on_found(saved)
    save_results(run, model, training)
    if stop.is_set() and stop.for_later:
        run.update(state="queued", reason="")
        return RunOutcome(model, "queued", "")
    run.update(state=state, reason=reason, chosen=_chosen(model))
    if on_saved is not None:
        on_saved(saved)
    return replace(saved, report=write_report(run, model, training))


def _fit(
    run: Run, searched: Training, settings: FitSettings, steering: Steering, watch: Callable[[Progress], bool]
) -> GMEQLRegressor:
    from gmeql.estimator import GMEQLRegressor

    options = settings.estimator_options()
    functions = steering.functions(settings.functions, standard_functions())
    options["functions"] = None if functions is None else list(functions)
    options |= knowledge_options(settings, searched, steering.pins)
    model = GMEQLRegressor(
        **options,
        verbose=0,
        checkpoint=str(run.checkpoints),
        checkpoint_interval=CHECKPOINT_SECONDS,
        callbacks=[watch],
    )
    return model.fit(frame_of(searched), searched.y, groups=groups_of(searched), **errors_of(searched))


def _judged(training: Training) -> JudgedRows:
    """The rows by which the best of several formulas is told."""
    from gmeql.search.polish.scoring import JudgedRows

    return JudgedRows.of(training.X, training.y, training.weights, training.names)


def _chosen(model: GMEQLRegressor) -> dict[str, Any]:
    """The formula that the model chose, for lists of runs: it may come from an earlier run, or by another rule than
    the best of the progress."""
    return member_record(model.front_[model.selected_index_])


def _written_out(
    progress: Progress, steering: Steering, training: Training, known: list[Member], rows: JudgedRows | None
) -> Progress:
    """The event over the real columns, beside what was `known`, judged on `rows`; as it is where `rows` is None."""
    from gmeql.search.offers.promotion import briefest

    if rows is None:
        return progress
    members = [*merge(progress.front, steering, training.names), *known]
    front: tuple[Member, ...] = ()
    for member in sorted(members, key=lambda member: (member.complexity, member.loss)):
        if not front or member.loss < front[-1].loss:
            front += (member,)
    return replace(progress, front=front, best=briefest(front, rows) if front else progress.best)


def _steered_model(
    run: Run,
    model: GMEQLRegressor,
    training: Training,
    settings: FitSettings,
    steering: Steering,
    known: list[Member],
) -> GMEQLRegressor:
    """The model over the real columns, with what an earlier run on the same data already knew."""
    from gmeql.estimator import GMEQLRegressor

    members = [*merge(model.front_, steering, training.names), *known]
    if not members:
        raise ConfigError("--forbid: every formula that was found holds something forbidden; give it more time")
    _save_front(run, training, settings, members, model.candidates_, model.seconds_)
    return GMEQLRegressor.load(run.model_path)


def _known_members(run: Run, training: Training) -> list[Any]:
    """The front of the run that this one goes on from, if it was fitted to the same rows."""
    from gmeql.estimator import GMEQLRegressor

    if run.continues is None:
        return []
    try:
        earlier = Run.open(run.continues)
        if earlier.description()["data"].get("fingerprint") != training.fingerprint:
            return []
        return list(GMEQLRegressor.load(earlier.model_path).front_)
    except StorageError:
        return []


def _save_front(
    run: Run, training: Training, settings: FitSettings, members: list[Any], candidates: int, seconds: float
) -> Front:
    from gmeql.model.certainty.deciding import basis_of
    from gmeql.model.files.model_file import StoredModel, save_model
    from gmeql.model.fit.ranges import column_ranges
    from gmeql.model.pareto.front import Front

    front = Front.from_members(
        members,
        rows=len(training.y),
        target_spread=float(training.y.std()),
        target_largest=float(np.abs(training.y).max()),
    )
    rule = settings.selection if settings.selection != "validation" else "best"
    chosen = front.select(rule)
    basis = basis_of(chosen, chosen.expression, training.X, training.y, training.weights, settings.loss)
    save_model(
        run.model_path,
        StoredModel(
            parameters=settings.estimator_options() | knowledge_options(settings, training),
            feature_names=training.names,
            n_features=len(training.names),
            fronts=(front,),
            selected=(chosen.index,),
            target_columns=None,
            candidates=int(candidates),
            seconds=float(seconds),
            ranges=tuple((float(low), float(high)) for low, high in column_ranges(training.X)),
            table_columns=training.table_names,
            bases=(basis,),
        ),
    )
    return front


def save_emergency(run: Run, training: Training, settings: FitSettings, progress: Progress) -> RunOutcome | None:
    """Write model and front from one progress event alone, for a process that must end; None without a formula."""
    from gmeql.estimator import GMEQLRegressor

    members = [member for member in progress.front if np.isfinite(member.loss)]
    if not members or progress.own is not None:  # own constants of groups are known to the model alone
        return None
    front = _save_front(run, training, settings, members, progress.candidates, progress.elapsed)
    run.write("front.csv", front_csv(front).encode())
    model = GMEQLRegressor.load(run.model_path)
    run.update(state="stopped", reason="stopped", chosen=_chosen(model))
    return RunOutcome(model, "stopped", "stopped")


def frame_of(training: Training) -> Any:
    """The training columns as a data frame with their names."""
    import polars as pl

    return pl.DataFrame(training.X, schema=[(name, pl.Float64) for name in training.names], orient="row")


def groups_of(training: Training) -> Any:
    """The group of each row as a named series; None where the rows have no groups."""
    import polars as pl

    return None if training.groups is None else pl.Series(str(training.group_column), list(training.groups))


def seen_by(model: GMEQLRegressor, training: Training) -> Training:
    """The training rows as the model's formulas see them: with the own constants of each row's group behind the columns."""
    own = getattr(model, "group_constants_", None)
    if own is None or training.groups is None:
        return training
    X = own.extended(training.X, own.codes(list(training.groups)))
    names = model.front_[model.selected_index_].expression.names
    return replace(training, X=X, names=names, table_names=None)  # no sheet has such columns


def save_results(run: Run, model: GMEQLRegressor, training: Training) -> None:
    """Write model.json and front.csv."""
    if training.table_names is not None:
        model.table_columns_ = training.table_names
    model.save(run.model_path)
    run.write("front.csv", front_csv(model.front_).encode())
    if others := _others(model):
        run.write("alternatives.csv", alternatives_csv(others).encode())
    own = getattr(model, "group_constants_", None)
    if own is not None:
        run.write("groups.csv", groups_csv(own, model.expression_, len(training.names)).encode())


def _others(model: GMEQLRegressor) -> list[dict[str, Any]]:
    """Formulas beside the chosen one, as the report lists them; none by squares that did not decide."""
    if model.front_.select("best").is_settled:
        return []
    try:
        return alternative_records(model.front_)
    except ValueError:  # losses that are not squared errors have none
        return []


def _known_in_groups(known: Knowledge | None, model: GMEQLRegressor) -> Knowledge | None:
    """What is known, asked of the formula of every group where there are groups."""
    from gmeql.knowledge.of_groups import GroupsKnowledge

    own = getattr(model, "group_constants_", None)
    return known if known is None or own is None else GroupsKnowledge.of(known, model.n_features_in_, own.values)


def write_report(run: Run, model: GMEQLRegressor, training: Training) -> Path:
    """Build report.html from the model and the folder."""
    from gmeql import report

    description = run.description()
    page = report.build(
        front=model.front_,
        selected=model.selected_index_,
        training=seen_by(model, training),
        history=list(run.history()),
        settings=description["settings"],
        versions=description["versions"],
        created=description["created"],
        command=reproduce_command(description, known=run.continues),
        seeded_from="" if run.continues is None else run.continues.name,
        knowledge=_known_in_groups(knowledge_of(run.settings(), training), model),
        own=getattr(model, "group_constants_", None),
        others=_others(model),
    )
    return run.write("report.html", page.encode())
