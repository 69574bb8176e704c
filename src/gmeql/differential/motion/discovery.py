"""From trajectories to a front of systems: propose, compare, prune, until the time is up.

1. curves, their slopes and their noise (`smoothing`);
2. where there is no noise, sums of products as equations of each state (`terms`), compared as systems on the trajectories:
   where one is exact, that is all;
3. the same with simple functions and terms that have a scale;
4. the search for formulas on the slopes, state by state; what it found, and sums with its terms, ranked in integral form;
5. systems of the best of them, refitted on the trajectories, one equation exchanged or one term dropped at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gmeql.differential.motion.comparison import Comparison, compare, compare_sizes
from gmeql.differential.motion.config import MOTION
from gmeql.differential.motion.exports import lines
from gmeql.differential.motion.measured import Motion
from gmeql.differential.motion.proposals import (
    Proposal,
    other_sums,
    plain_sums,
    proposed,
    shortlist,
    state_front,
    sums,
    sums_of_fitted,
)
from gmeql.differential.motion.systems import System, SystemFront, plain
from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Node
from gmeql.model.fit.fitting import STOPPED, RunResult, search_targets
from gmeql.model.fit.progress import Notes
from gmeql.model.pareto.front import Front
from gmeql.search.config import SearchConfig

INTERRUPTED = "interrupted"
ENDED_BY_USER = (INTERRUPTED, STOPPED)
"""Reasons of a search for which nothing else is begun."""


@dataclass(frozen=True)
class Discovery:
    """What was found."""

    systems: SystemFront
    fronts: tuple[Front, ...]
    candidates: int
    seconds: float
    reason: str
    interrupted: bool


def discover(
    motion: Motion,
    *,
    config: SearchConfig,
    seed: int,
    callbacks: Sequence[Callable[[Any], Any]] = (),
    verbose: int = 0,
    stopped: bool = False,
) -> Discovery:
    """Search for systems of equations until the time of `config` is up, one is exact, or a callback returns True.

    Ctrl-C ends it with what was found, at the least a sum of plain terms for each state, which is all that is looked for
    where it was `stopped` already.
    """
    begin = time.monotonic()
    max_time = config.max_time if config.max_time is not None else float("inf")
    tell = _teller(motion, begin, config.max_time) if verbose else None
    comparison = Comparison(motion, begin + MOTION.system.first_share * max_time, tell=tell)
    E = motion.n_equations
    searched: list[list[Node]] = [[] for _ in range(E)]
    proposals: list[list[Proposal]] = [[] for _ in range(E)]
    candidates, reason = 0, "time is up"
    try:
        if stopped:
            raise KeyboardInterrupt
        if motion.is_exact and (exact := _exact_sum(motion, proposals, begin, max_time, tell)) is not None:
            comparison = exact
        else:
            _propose(motion, proposals, max_time)
            compare(comparison, [shortlist(p) for p in proposals], searched)
        ended = ""
        if not comparison.is_exact:
            for j in range(E):
                result = _search(motion, j, config, seed + j, begin, callbacks, verbose)
                candidates += result.candidates
                searched[j] = [m.expression.root for m in (*result.front, *result.front.others[: MOTION.system.others])]
                if result.reason in ENDED_BY_USER:
                    ended = result.reason
                    break
        if not comparison.is_exact and not ended:
            for j in range(E):
                roots = [*searched[j], *sums(motion, j, searched[j])]
                until = begin + (MOTION.system.search_share + (j + 1) / E * MOTION.system.proposal_share) * max_time
                proposals[j] = proposed(motion, j, roots, known=proposals[j], until=until)
            comparison.deadline = begin + (1.0 - MOTION.system.reserve) * max_time
            compare(comparison, [shortlist(p) for p in proposals], searched)
        reason = ended or ("exact" if comparison.is_exact else reason)
        comparison.finish()
    except KeyboardInterrupt:
        reason = INTERRUPTED
        if comparison.best is None:
            _sparse_start(comparison, proposals)
    fronts = tuple(state_front(motion, j, proposals[j]) for j in range(E))
    systems = SystemFront.of(list(comparison.known.values()), motion.columns.names)
    return Discovery(systems, fronts, candidates, time.monotonic() - begin, reason, reason == INTERRUPTED)


def _exact_sum(
    motion: Motion,
    proposals: list[list[Proposal]],
    begin: float,
    max_time: float,
    tell: Callable[[System, int], None] | None,
) -> Comparison | None:
    """Systems whose equations are sums of products, where one is exact and nothing simpler might be: most laws of text-books.

    Such sums are linear in their constants, so this takes a moment. But they follow anything smooth: a small swing's
    sine by `x`, `x**3` and `x*v**2`. `proposals` get what was fitted.
    """
    deadline = begin + MOTION.system.plain_share * max_time
    for j in range(motion.n_equations):
        proposals[j] = proposed(motion, j, plain_sums(motion, j), until=deadline)
    comparison = Comparison(motion, deadline, tell=tell)
    compare_sizes(comparison, [shortlist(p) for p in proposals])
    if not comparison.is_exact or comparison.best is None:
        return None
    for j, root in enumerate(comparison.best.equations):
        own = max(motion.rows.fit(root, j)[1], motion.rows.floor(j))
        others = proposed(motion, j, other_sums(motion, j, root), until=deadline)
        if comparison.is_late or any(p.residual < MOTION.system.cliff**2 * own for p in others):
            return None
    return comparison


def _propose(motion: Motion, proposals: list[list[Proposal]], max_time: float) -> None:
    """Sums of terms of all kinds for each state, then those with terms whose constants the first ones have fitted."""
    begin, E = time.monotonic(), motion.n_equations
    for j in range(E):
        until = begin + (j + 1) / E * MOTION.system.proposal_share * max_time
        proposals[j] = proposed(motion, j, sums(motion, j), known=proposals[j], until=until)
    for j in range(E):
        until = begin + (1 + (j + 1) / E) * MOTION.system.proposal_share * max_time
        roots = sums_of_fitted(motion, j, proposals)
        proposals[j] = proposed(motion, j, roots, known=proposals[j], until=until)


def _sparse_start(comparison: Comparison, proposals: list[list[Proposal]]) -> None:
    """A first system, of plain sums for states that have no equation yet: it takes a moment, and is better than nothing.

    `proposals` are completed.
    """
    motion = comparison.motion
    for j, of_state in enumerate(proposals):
        if not of_state:
            proposals[j] = proposed(motion, j, plain_sums(motion, j))
    comparison.fit([of_state[0].root for of_state in proposals], None)


def _teller(motion: Motion, begin: float, max_time: float | None) -> Callable[[System, int], None]:
    """Says on stderr which system is the best so far."""
    notes, budget = Notes(), "" if max_time is None else f" of {max_time:g} s"

    def tell(system: System, compared: int) -> None:
        right = [Expression(plain(root), motion.columns.names) for root in system.equations]
        found = "; ".join(lines(motion.columns, right))
        notes.say(
            f"{time.monotonic() - begin:.1f} s{budget}, {compared} system{'s' * (compared > 1)} compared, nearest: {found}"
        )

    return tell


def _search(
    motion: Motion,
    j: int,
    config: SearchConfig,
    seed: int,
    begin: float,
    callbacks: Sequence[Callable[[Any], Any]],
    verbose: int,
) -> RunResult:
    """The search for formulas of one state's slope, with an even share of what the earlier states left."""
    left = motion.n_equations - j
    changes: dict[str, Any] = {}
    if config.max_time is not None:
        spent = time.monotonic() - begin
        changes["max_time"] = max((MOTION.system.search_share * config.max_time - spent) / left, 0.5)
    if config.max_candidates is not None:
        changes["max_candidates"] = max(config.max_candidates // motion.n_equations, 1)
    rows = motion.target_rows(j)
    return search_targets(
        rows,
        motion.columns.names,
        method="fitted",
        config=replace(config, **changes),
        seed=seed,
        callbacks=list(callbacks),
        verbose=verbose,
    )[0]
