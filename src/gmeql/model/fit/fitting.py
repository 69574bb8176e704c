"""Searches from start to end, one per target: progress, callbacks, checkpoints, Ctrl-C.

A run never loses what it found: an interrupt ends it early, a full disk costs it the checkpoint, never the front.
"""

from __future__ import annotations

import math
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gmeql.fitters.waiting import COMPILING
from gmeql.formula.nodes import Node
from gmeql.knowledge.knowledge import Knowledge
from gmeql.knowledge.scene import Scene
from gmeql.model.certainty.repeats import without_repeats
from gmeql.model.certainty.shown import with_shown_digits
from gmeql.model.choice.chance import with_chance
from gmeql.model.choice.exponents import with_round_exponents
from gmeql.model.choice.plain_constants import with_plain_constants
from gmeql.model.choice.series import with_series
from gmeql.model.choice.unmoved import with_unmoved
from gmeql.model.fit.inputs import TrainingRows
from gmeql.model.fit.keeping import History, Keeper
from gmeql.model.fit.kernels import are_missing, keep_first_kernels, load_kernels
from gmeql.model.fit.methods import METHODS, searcher_of
from gmeql.model.fit.preparation import FloatArray, PreparedData, prepare
from gmeql.model.fit.progress import ProgressDisplay
from gmeql.model.fit.ranges import column_ranges
from gmeql.model.fit.without_outliers import DividedSearch
from gmeql.model.pareto.front import Front
from gmeql.search.config import SearchConfig
from gmeql.search.events import Member, Progress
from gmeql.search.groups.table import OwnConstants
from gmeql.search.losses.losses import find_loss
from gmeql.search.offers.preview import first_look

CHECKPOINT_SECONDS = 30.0
KEPT_MEMBERS = 1000
"""Formulas that were on the front for a while, kept beside it for `Front.others`."""
MEASURED_MEMBERS = 200
"""... and as many of them where a search ranked its front on a sample: each is measured anew, on all rows."""
Callback = Callable[[Progress], Any]
STOPPED = "stopped by a callback"
INTERRUPTED = "interrupted"


class InterruptedWarning(UserWarning):
    """Ctrl-C ended a fit early; what was found is kept."""


@dataclass(frozen=True)
class RunResult:
    """What a run leaves behind."""

    front: Front
    history: History
    candidates: int
    seconds: float
    reason: str
    interrupted: bool
    is_whole: bool
    """Whether the search ended between two steps."""
    state: dict[str, Any] | None
    """The search's state, to go on from; None when it was cut in the middle of a step, or nobody wants it."""
    own: OwnConstants | None = None
    """Constants of each group's own that formulas of the front have, where the rows have groups."""


def run_search(
    data: PreparedData,
    *,
    method: str = "fitted",
    config: SearchConfig,
    seed: int,
    callbacks: Sequence[Callback] = (),
    checkpoint: Path | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    previous: RunResult | None = None,
    keep_state: bool = True,
) -> RunResult:
    """Search `data` until the budget of `config` is spent, a callback returns True, or Ctrl-C.

    With `checkpoint`, a folder, the state is saved there every `checkpoint_seconds` and at the end, and a state already
    there is continued. `previous` is an earlier run on the same data to go on from, with the budget on top of its own;
    for such a later run `keep_state` holds the search's state.
    """
    searcher = searcher_of(method, config)
    if METHODS[method].compiled:
        _make_kernels_ready(data, config, callbacks)
    keeper = Keeper(searcher, data, config, seed, checkpoint, checkpoint_seconds)
    search, history = keeper.resume()
    if search is None and previous is not None and previous.state is not None:
        config, history = _extended(config, previous), previous.history
        search = searcher.from_state(previous.state, data.X, data.y, config=config, **data.row_options)
    if search is None:
        search = searcher(data.X, data.y, names=data.names, config=config, seed=seed, **data.row_options)
    if config.is_plain and METHODS[method].takes_losses and data.groups is None and data.errors is None:
        search = DividedSearch(search, data, config, seed)
    if previous is not None:
        known = (*previous.front, *previous.front.others)
        keeper.seen |= {m.expression.root: Member(m.expression, m.loss, m.complexity) for m in known}
    course = _follow(search, keeper, history, data, callbacks, keep_state=keep_state)
    _require_kept(search, config)
    return RunResult(
        front=_front(search, data, config, keeper.seen, whole=course.is_whole),
        history=history,
        candidates=int(search.candidates),
        seconds=float(search.elapsed),
        reason=course.reason,
        interrupted=course.reason == INTERRUPTED,
        is_whole=course.is_whole,
        state=course.state,
        own=None if data.groups is None else search.own_constants,
    )


def _make_kernels_ready(data: PreparedData, config: SearchConfig, callbacks: Sequence[Callback]) -> None:
    """Compile what is not on disk; meanwhile callbacks see what linear algebra finds without it."""
    if callbacks and data.groups is None and data.errors is None and are_missing():
        first = first_look(data.X, data.y, data.weight, data.names, config, note=COMPILING)
        if first is not None:
            for callback in callbacks:  # who wants to stop is asked again when there is a result to keep
                callback(data.restore_progress(first))
    keep_first_kernels() if config.max_time is None else load_kernels()


@dataclass(frozen=True)
class _Course:
    """How a search ended."""

    reason: str
    is_whole: bool
    """Whether it ended between two steps."""
    state: dict[str, Any] | None


def _follow(
    search: Any,
    keeper: Keeper,
    history: History,
    data: PreparedData,
    callbacks: Sequence[Callback],
    *,
    keep_state: bool,
) -> _Course:
    """Let a search run to its end, a callback's or Ctrl-C; its course is added to `history`, its formulas to the keeper's."""
    last: Progress | None = None
    reason, is_whole = "", True
    with deferred_interrupt() as interrupt:
        events: Any = search.run()
        is_complete = keeper.is_complete(search)
        if is_complete:
            search.judge_again()
        try:
            for event in () if is_complete else events:
                last = data.restore_progress(event)
                history.add(last)
                # own constants are those of today's front only
                if data.groups is None and len(keeper.seen) < KEPT_MEMBERS:
                    keeper.seen |= {m.expression.root: m for m in last.front}
                if not last.done:
                    keeper.save_if_due(search, history)
                stop = [bool(callback(last)) for callback in callbacks]  # every callback sees every event
                if any(stop):
                    reason = STOPPED
                    break
                if interrupt.is_set():
                    reason = INTERRUPTED
                    break
        except KeyboardInterrupt:
            if last is None and not search.front:
                raise
            reason, is_whole = INTERRUPTED, False
        finally:
            events.close()
        if is_whole and last is not None:
            keeper.save(search, history, last.reason)
        state = search.state() if is_whole and keep_state else None
        if (
            is_whole and reason and last is not None and not last.done
        ):  # what lies in the islands has to reach the front
            search.finish(reason)
    return _Course(reason or (last.reason if last is not None else keeper.reason), is_whole, state)


def _front(search: Any, data: PreparedData, config: SearchConfig, seen: Mapping[Node, Member], *, whole: bool) -> Front:
    """The front of a search that has ended, with the formulas that were `seen` on it before."""
    members = [data.restore_member(m) for m in search.front]
    kept = {member.expression.root for member in members}
    beaten = [member for root, member in seen.items() if root not in kept]
    if find_loss(config.loss).value is not None or data.errors is not None:
        beaten = []  # their losses are those of the squares that stood for it
    elif len(data.y) > config.polish_rows:
        beaten = _measured(beaten, data)
    front = Front.from_members(
        members,
        rows=data.rows,
        target_spread=data.target_spread,
        target_largest=data.target_largest,
        loss=config.loss if isinstance(config.loss, str) else "own",
        beaten=beaten,
    )
    sums = [data.restore_member(m) for m in (search.sums if whole else ())]
    front = front.with_sums(sums)
    if whole and data.groups is None and data.errors is None:
        aside = [data.restore_expression(each) for each in search.aside] if config.is_plain else []
        front = with_unmoved(front, *data.as_given, config=config, aside=aside)
        front = with_chance(front, *data.as_given, config=config, sums=sums)
    return front


class NoFormulaError(ValueError):
    """Nothing was found that keeps what the user knows."""


def _require_kept(search: Any, config: SearchConfig) -> None:
    """Refuse a front that holds nothing but the mean where what is known rules that out."""
    knowledge, front = config.knowledge, search.front
    if knowledge is None or len(front) > 1:
        return
    root = front[0].expression.root
    if not knowledge.admits(root) or not knowledge.keeps(root):
        raise NoFormulaError(
            "no formula that keeps all that is known was found; give the search more time, or make some of it soft "
            '(unit_check="soft", or "soft " in front of a constraint)'
        )


def _measured(beaten: Iterable[Member], data: PreparedData) -> list[Member]:
    """The best of the formulas beyond the front, with losses on all rows, as the members of the front have them."""
    ranked = sorted(beaten, key=lambda m: (m.loss, m.expression.complexity))
    return [data.measured(member) for member in ranked[:MEASURED_MEMBERS]]


@contextmanager
def deferred_interrupt() -> Iterator[threading.Event]:
    """Hold back the first Ctrl-C until the search is between two steps; a second one acts at once.

    Only in the main thread and where nobody else handles the signal.
    """
    pressed = threading.Event()
    original = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or original is not signal.default_int_handler:
        yield pressed
        return

    def remember(signum: int, frame: Any) -> None:
        pressed.set()
        signal.signal(signal.SIGINT, original)

    signal.signal(signal.SIGINT, remember)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, original)


def _extended(config: SearchConfig, previous: RunResult) -> SearchConfig:
    """`config` with its budget counted from where `previous` ended."""
    changes: dict[str, Any] = {}
    if config.max_time is not None:
        changes["max_time"] = config.max_time + previous.seconds
    if config.max_candidates is not None:
        changes["max_candidates"] = config.max_candidates + previous.candidates
    return replace(config, **changes)


def share_budget(config: SearchConfig, targets_left: int, seconds_spent: float, candidates_spent: int) -> SearchConfig:
    """The budget of the next of several targets: an even share of what the earlier ones left, at least one step."""
    changes: dict[str, Any] = {}
    if config.max_time is not None:
        changes["max_time"] = max((config.max_time - seconds_spent) / targets_left, 1e-3)
    if config.max_candidates is not None:
        changes["max_candidates"] = max(math.ceil((config.max_candidates - candidates_spent) / targets_left), 1)
    return replace(config, **changes)


def search_targets(
    rows: TrainingRows,
    names: tuple[str, ...],
    *,
    method: str,
    config: SearchConfig,
    seed: int,
    knowledge: Sequence[Knowledge | None] | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: int = 0,
    checkpoint: Path | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    earlier: Sequence[RunResult] | None = None,
    keep_states: bool = True,
    titles: Sequence[str] | None = None,
) -> list[RunResult]:
    """One search per target of `rows`, the budget of `config` shared between them; once interrupted, one step for each.

    `knowledge` is what the user knows of each target, `earlier` are runs to go on from, and `keep_states` says whether
    somebody may want to go on from these. `titles` are what the targets of several are called where people watch.
    """
    count = rows.targets.shape[1]
    titles = titles or [f"target {j + 1} of {count}" if count > 1 else "" for j in range(count)]
    results: list[RunResult] = []
    for j in range(count):
        kept: dict[str, Any] = {"groups": rows.groups, "errors": rows.errors}
        data = prepare(rows.X, rows.targets[:, j], rows.weight, names, merge=METHODS[method].takes_weights, **kept)
        seconds, candidates = sum(r.seconds for r in results), sum(r.candidates for r in results)
        folder = checkpoint / f"target-{j}" if checkpoint is not None and count > 1 else checkpoint
        with _display(config.max_time, verbose, titles[j]) as display:
            result = run_search(
                data,
                method=method,
                config=_for_target(
                    share_budget(config, count - j, seconds, candidates),
                    None if knowledge is None else knowledge[j],
                    data,
                    rows.X,
                ),
                seed=seed + j,
                callbacks=[*callbacks, display.update] if display is not None else callbacks,
                checkpoint=folder,
                checkpoint_seconds=checkpoint_seconds,
                previous=earlier[j] if earlier is not None else None,
                keep_state=keep_states,
            )
        is_known = knowledge is not None and knowledge[j] is not None
        if result.is_whole and rows.groups is None and rows.errors is None and not is_known:
            in_order = rows.X, rows.targets[:, j], rows.weight  # a search has its rows in an order of their own
            front = with_series(result.front, *in_order, config=config)
            front = with_round_exponents(front, *in_order, config=config)
            result = replace(result, front=with_plain_constants(front, *in_order, config=config))
        result = replace(result, front=_shown(result, rows, j, config.loss))
        results.append(result)
        if result.interrupted:
            config = replace(config, max_candidates=1)  # every target needs a formula, nobody wants to wait for it
            warnings.warn(
                f"interrupted after {result.seconds:.1f} s; keeping the formulas found so far",
                InterruptedWarning,
                stacklevel=3,
            )
    return results


def _shown(result: RunResult, rows: TrainingRows, target: int, loss: Any) -> Front:
    """The front as people see it: each formula once, constants to the digits that the rows know. Of a front that ends with an
    exact formula hardly anybody looks at them all."""
    X = rows.X
    if result.own is not None and rows.groups is not None:
        X = result.own.extended(X, rows.groups.codes)
    front = without_repeats(result.front, X)
    known: dict[str, Any] = {"loss": loss, "errors": rows.errors, "late": result.reason == "exact"}
    return with_shown_digits(front, X, rows.targets[:, target], rows.weight, **known)


def _for_target(config: SearchConfig, knowledge: Knowledge | None, data: PreparedData, X: FloatArray) -> SearchConfig:
    """The config with what is known of one target, and where that is looked at."""
    if knowledge is None:
        return config
    ranges = tuple((float(low), float(high)) for low, high in column_ranges(X))
    scene = Scene(data.names, ranges, data.target_spread or 1.0, data.column_exponents, data.target_exponent)
    return replace(config, knowledge=replace(knowledge, scene=scene))


def _display(max_time: float | None, verbose: int, title: str) -> AbstractContextManager[ProgressDisplay | None]:
    """Where a search shows itself: nowhere, live, or in plain lines."""
    if not verbose:
        return nullcontext()
    budget = f"of {max_time:g} s" if max_time is not None else ""
    return ProgressDisplay("lines" if verbose >= 2 else "auto", title=title, budget=budget)
