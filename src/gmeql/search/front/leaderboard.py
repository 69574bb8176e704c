"""The front while it grows: the best formula of each complexity, in the order of simple to accurate.

What counts is the loss to expect on rows that were not seen (`judging/soundness.py`): the training loss of the luckiest of
thousands of formulas says little. Formulas exact to rounding are exempt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Constant, Node
from gmeql.knowledge.knowledge import Knowledge
from gmeql.network.families import FunctionSet
from gmeql.search.front.choosing import costs_by_length, measured, sums_of_columns
from gmeql.search.front.effective import least_effective_member
from gmeql.search.front.promises import with_promises
from gmeql.search.config import SearchConfig
from gmeql.search.losses.converging import converged, mean_loss
from gmeql.search.losses.effective import MOST_RISE
from gmeql.search.events import Member
from gmeql.search.groups.table import Grouping, OwnConstants, front_table, own_columns, with_few_own
from gmeql.search.losses.losses import find_loss
from gmeql.search.judging.outlook import Outlook, freedom_factor, outlooks
from gmeql.search.polish.cutting import without_dead_terms
from gmeql.search.polish.knowable import gentler, is_knowable
from gmeql.search.polish.printable import as_printed, is_printable
from gmeql.search.polish.scoring import JudgedRows, Scored, clean, description_length, unseen_length
from gmeql.search.polish.waves import are_waves_known
from gmeql.search.polish.writing import written
from gmeql.search.data.rows import FloatArray, SearchRows
from gmeql.search.judging.soundness import left_out_squares, unseen_loss
from gmeql.search.judging.structure import linear_columns, power_columns


class Leaderboard:
    """Formulas by complexity, each with less loss to expect than every simpler one, judged on `rows.polished`."""

    def __init__(self, config: SearchConfig, members: dict[int, Scored]) -> None:
        self.config = config
        self.members = members
        self._front: tuple[Member, ...] | None = None
        self._own: OwnConstants | None = None

    @classmethod
    def start(cls, config: SearchConfig, rows: SearchRows) -> Leaderboard:
        """With the mean alone, so that there is an answer from the start; what the user knows may rule it out later."""
        return cls(config, {1: _mean(rows)})

    def copy(self) -> Leaderboard:
        """The same front, which changes by itself from now on."""
        return Leaderboard(self.config, dict(self.members))

    @property
    def best(self) -> Scored:
        """The member of least description length."""
        return min(self.members.values(), key=lambda member: member.length)

    @property
    def closest(self) -> Scored:
        """The member with the least loss to expect on unseen rows: what lies far from it is far off."""
        return min(self.members.values(), key=lambda member: member.unseen)

    def leading(self, n: int) -> list[Scored]:
        """The `n` members of least description length, the best first."""
        return sorted(self.members.values(), key=lambda member: member.length)[:n]

    def front(self, rows: SearchRows) -> tuple[Member, ...]:
        """The members as the world sees them, from simple to accurate."""
        if self._front is None:
            ordered = sorted(self.members.items())
            if rows.groups is not None:
                return self._grouped_front(rows, rows.groups)
            shown = ((as_printed(m.root, m.loss, rows.polished), m.loss, c) for c, m in ordered)
            self._front = tuple(Member(Expression(root, rows.names), math.sqrt(loss), c) for root, loss, c in shown)
        return self._front

    def _grouped_front(self, rows: SearchRows, groups: Grouping) -> tuple[Member, ...]:
        """The members over the columns of the table and one table of all their own constants."""
        ordered = sorted(self.members.items())
        roots, own = front_table([(m.root, m.own) for _, m in ordered], rows.n_variables, groups)
        self._own = own
        self._front = tuple(
            Member(
                Expression(root, own.names(root, rows.names)),
                math.sqrt(m.loss),
                c,
                n_own=len(groups.labels) * len(own_columns(root, rows.n_variables)),
            )
            for root, (c, m) in zip(roots, ordered, strict=True)
        )
        return self._front

    def own_constants(self, rows: SearchRows) -> OwnConstants | None:
        """Constants of each group's own, of all members of `front`; None where the rows have no groups."""
        self.front(rows)
        return self._own

    def look_out(self, rows: SearchRows, *, late: bool = False) -> None:
        """Tell of every member what it promises on unseen rows, judged on all rows there are; as `late` as somebody asks
        where that is said."""
        self._front = with_promises(self.front(rows), self.own_constants(rows), rows, late=late)

    def converge(self, rows: SearchRows, *, move: bool = True) -> None:
        """Lead every member to the least of the loss itself, and show that loss and what is to be expected of it on unseen
        rows; those that a simpler one beats go.

        Without `move` constants stay where they are, as where the user gave bounds for some.
        """
        loss = find_loss(self.config.loss)
        shown: list[Member] = []
        own = self.own_constants(rows)
        X = rows.X if own is None or rows.groups is None else own.extended(rows.X, rows.groups.codes)
        members = [*self.front(rows), *(self._sums(rows) if own is None and move else ())]
        for member in sorted(members, key=lambda each: each.complexity):
            root = member.expression.root
            if own is None and move:
                held = frozenset() if rows.knowledge is None else rows.knowledge.held_constants(root)
                root, _ = converged(root, X, rows.given_y, rows.given_weights, loss, held)
            least = mean_loss(member.expression.with_root(root)(X), rows.judged_y, rows.given_weights, loss)
            if math.isfinite(least) and (not shown or least < shown[-1].loss):
                expression = member.expression.with_root(root)
                if shown and shown[-1].complexity == expression.complexity:
                    shown.pop()
                shown.append(replace(member, expression=expression, loss=least, complexity=expression.complexity))
        if own is None and shown:
            roots = [member.expression.root for member in shown]
            found = self._with_measured_sums(
                outlooks(roots, X, rows.judged_y, rows.given_weights, loss=loss), roots, rows
            )
            shown = [replace(member, outlook=outlook) for member, outlook in zip(shown, found, strict=True)]
        self._front = tuple(shown) or self._front

    def _sums(self, rows: SearchRows) -> list[Member]:
        """Sums of columns, which the squares that stand for a loss around another formula may have kept from the front."""
        if self._keeps_form:
            return []
        found = sums_of_columns(rows.X, rows.given_y, rows.given_weights, FunctionSet(self.config.functions))
        sums = [Expression(root, rows.names) for root in found if _is_kept(root, rows.knowledge)]
        return [Member(one, math.inf, one.complexity) for one in sums if one.complexity <= self.config.max_complexity]

    def _with_measured_sums(
        self, found: Sequence[Outlook], roots: Sequence[Node], rows: SearchRows
    ) -> Sequence[Outlook]:
        """What sums of columns promise under a likelihood, with the luck of choosing their columns measured."""
        loss, lines = find_loss(self.config.loss), [len(linear_columns(root) or ()) for root in roots]
        if not loss.mean_is_nats or not any(lines) or self._keeps_form:
            return found
        known, functions = (rows.X, rows.given_y, rows.given_weights), FunctionSet(self.config.functions)
        costs = costs_by_length(*known, loss, functions, most_columns=max(lines), judged_by=rows.judged_y)
        return measured(found, roots, costs, rows.given_weights)

    def converge_effective(self, rows: SearchRows, least: Callable[[Node], Node] | None = None) -> None:
        """Lead the constants of every member to the least of the effective variance; losses stay those of the weights.

        A member that would then break what the user knows, or fit far worse, stays as it is. `least` gives the formula with
        those constants where constants hang together, as inside a template.
        """
        assert rows.errors is not None
        for complexity, member in self.members.items():
            root, own = least_effective_member(member, rows, least)
            before, seen = rows.extended(member.own), rows.extended(own)
            with np.errstate(all="ignore"):
                squares = (Expression(root, seen.names)(seen.X) - rows.y) ** 2
                weights = rows.given_weights * rows.errors.shares(member.root, before.X)
                first = (Expression(member.root, before.names)(before.X) - rows.y) ** 2
                grows = float(weights @ squares) > MOST_RISE * float(weights @ first)
            if grows or not np.isfinite(squares).all() or not _is_kept(root, seen.knowledge):
                continue
            loss = float(np.average(squares, weights=rows.weights))
            moved = Scored(root, loss, member.length, complexity, unseen=member.unseen)
            moved.own, moved.source = own, member.source
            self.members[complexity] = moved
        self._front = None

    def offer(
        self,
        found: Sequence[Scored],
        rows: SearchRows,
        out_of_time: Callable[[], bool] = lambda: False,
        *,
        settled: bool = False,
    ) -> bool:
        """Take in what no simpler member matches; whether the best description length fell by enough to count.

        The first is always looked at; the others while there is time, since each is put in order and judged. Where they
        are `settled`, they stood on the front before: their form stays, and that the rows can know it is not asked again.
        """
        before = self.best.length
        table = rows
        for place, scored in enumerate(found):
            if place and out_of_time():
                break
            own, source, seen = scored.own, scored.source, dict[Node, Scored]()
            rows = table.extended(own)
            if not math.isfinite(scored.loss) or scored.complexity > self.config.max_complexity:
                continue
            if self._is_dominated(scored, rows):
                continue
            if len(rows.y) > 1 and rows.polished.n_fitted(scored.root) >= len(rows.y):
                continue  # as many constants as rows go through any rows, and promise nothing of others
            if not self._keeps_form and not settled:
                # with groups what they have of their own is taken out later, and shortens a formula by more
                if rows.groups is None and self._is_outdone(scored, rows, seen):
                    continue
                scored = written(self._tidied(scored, rows), rows.polished)
            if self._is_dominated(scored, rows):
                continue
            n_rows = max(len(rows.y), self.config.front.min_wave_rows)
            if not settled and not are_waves_known(scored.root, scored.loss, rows.polished, n_rows=n_rows):
                continue
            exact = rows.polished.is_exact(scored.loss)
            if not settled and not exact and not is_printable(scored.root, scored.loss, rows.polished):
                continue
            judged = seen.get(scored.root) or self._judged(scored, rows)
            if not math.isfinite(judged.unseen) or self._is_dominated(judged, rows):
                continue
            known = judged if settled else self._knowable(judged, rows)
            if known is None or (known is not judged and self._is_dominated(known, rows)):
                continue
            if not _is_kept(known.root, rows.knowledge):
                continue
            if own is not None and not self._keeps_form:
                known, own = self._with_few_own(known, own, table)
            scored = known
            scored.own, scored.source = own, source
            # the mean was there from the start, unasked
            self.members = {c: m for c, m in self.members.items() if c > 1 or self._was_kept(m)}
            self.members[scored.complexity] = scored
            self.members = {
                c: m
                for c, m in sorted(self.members.items())
                if m is scored or not (self._excludes(m, scored, rows) if c < scored.complexity else _beats(scored, m))
            }
            self._front = None
        return self.best.length < before - self.config.front.gain_nats

    def _was_kept(self, member: Scored) -> bool:
        """The same of a member that stands there; one with own constants was judged in every group when it came."""
        return member.own is not None or _is_kept(member.root, self.config.knowledge)

    @property
    def _keeps_form(self) -> bool:
        """Whether formulas stay as they are written: the outer form is the user's."""
        return self.config.knowledge is not None and self.config.knowledge.template is not None

    def rank_anew(self, found: Sequence[Scored], rows: SearchRows, *, settled: bool = False) -> bool:
        """A front of these formulas alone, whose losses were taken on other rows or with other weights."""
        self.members = {1: _mean(rows)}
        self._front = None
        return self.offer(sorted(found, key=lambda scored: scored.complexity), rows, settled=settled)

    def is_promising(self, loss: float, complexity: int) -> bool:
        """Whether a raw elite could reach the front: cutting may halve its complexity, not its loss."""
        return not any(m.loss <= loss for c, m in self._rivals() if c <= max(complexity, 2) // 2 + 2)

    def _rivals(self) -> list[tuple[int, Scored]]:
        """Members that a formula must beat: not the mean where what the user knows rules it out."""
        members = list(self.members.items())
        if self.config.knowledge is None or len(members) > 1 or self._was_kept(members[0][1]):
            return members
        return []

    def _judged(self, scored: Scored, rows: SearchRows) -> Scored:
        """The same formula with the loss to expect on other rows, and the description length that this makes."""
        judged, numbers = rows.polished, self.config.front
        if judged.is_exact(scored.loss):
            # a fitted exponent may have become a plain one, which weighs less: the tree alone knows its complexity
            return Scored(scored.root, scored.loss, description_length(scored.root, scored.loss, judged))
        simpler = [m.root for c, m in self.members.items() if c < scored.complexity and m.own is None]
        known = (judged.X, judged.target, judged.weights, rows.between)
        loss = unseen_loss(scored.root, *known, pole_price=numbers.pole_price, rivals=simpler)
        if rows.knowledge is not None:
            loss *= rows.knowledge.price(scored.root)
        loss *= freedom_factor(judged.n_own(scored.root), len(judged.target))
        length = unseen_length(scored.root, loss, judged)
        return Scored(scored.root, scored.loss, length, unseen=loss)

    def _knowable(self, scored: Scored, rows: SearchRows) -> Scored | None:
        """The formula, or the gentlest one that the rows cannot tell from it; None where they cannot know that either."""
        judged = rows.polished
        if is_knowable(scored.root, scored.loss, judged):
            return scored
        root = clean(gentler(scored.root, scored.loss, judged), judged)
        if root is None or root == scored.root:
            return None
        loss = _loss_on(root, judged)
        other = self._judged(written(Scored(root, loss, description_length(root, loss, judged)), judged), rows)
        return other if math.isfinite(other.unseen) and is_knowable(other.root, other.loss, judged) else None

    def _is_dominated(self, scored: Scored, rows: SearchRows) -> bool:
        """Whether a member that excludes this formula takes precedence: as a rule the simpler of two that exclude each
        other, and of equally complex ones the one of less description length.

        A sum of columns is not one of the thousands that a search tries, and states its structure in few nats
        (`judging/structure.py`): against it the description length decides, so that an odd form on one column does not keep the
        plain sum of all from the front.
        """
        same = self.members.get(scored.complexity)
        if same is not None:
            are_laws = None not in (power_columns(same.form), power_columns(scored.form))  # not judged yet, it may be
            briefer = self._is_briefer(same, scored, rows) if are_laws else same.length <= scored.length
            if self._comes_first(same, scored, rows, otherwise=briefer):
                return True
        others = [(c < scored.complexity, m) for c, m in self._rivals() if c != scored.complexity]
        return any(
            (self._excludes(m, scored, rows) if simpler else _beats(scored, m))
            and self._comes_first(m, scored, rows, otherwise=simpler)
            for simpler, m in others
        )

    def _is_outdone(self, scored: Scored, rows: SearchRows, seen: dict[Node, Scored]) -> bool:
        """Whether a far simpler member promises more, however the formula will be written. To judge it takes a fifth of
        the time of putting it in order, and few of the hundreds that polishing meets are as good as they fit. Judged it is
        put among those `seen`: its form may be in order already."""
        least = scored.complexity - self.config.front.tidied_off
        simpler = [member for complexity, member in self._rivals() if complexity < least]
        if not simpler:
            return False
        judged = seen[scored.root] = self._judged(scored, rows)
        beaten = (
            self._excludes(m, judged, rows) and self._comes_first(m, judged, rows, otherwise=True) for m in simpler
        )
        return math.isfinite(judged.unseen) and any(beaten)

    def _excludes(self, simpler: Scored, longer: Scored, rows: SearchRows) -> bool:
        """Whether a formula promises or fits as much as a longer one, so that only one of them can stand on the front."""
        floor, more = rows.polished.floor, 1 + self.config.front.least_gain
        promised, fitted = max(longer.unseen, floor) * more, max(longer.loss, floor) * more
        return simpler.unseen <= promised or simpler.loss <= fitted

    def _comes_first(self, one: Scored, other: Scored, rows: SearchRows, *, otherwise: bool) -> bool:
        """Whether `one` takes precedence over `other`; as said in `otherwise` where neither is a sum of columns."""
        return self._is_briefer(one, other, rows) if _is_sum(one.form) or _is_sum(other.form) else otherwise

    def _is_briefer(self, one: Scored, other: Scored, rows: SearchRows) -> bool:
        """Whether `one` has the less description length, judged or not: both by what their structures take to state."""
        price, judged = self.config.front.unseen_node_nats, rows.polished
        lengths = [unseen_length(m.root, m.unseen, judged, node_cost=price) for m in (one, other)]
        return lengths[0] <= lengths[1]

    def _with_few_own(self, scored: Scored, own: FloatArray, table: SearchRows) -> tuple[Scored, FloatArray]:
        """The same formula and its own constants, what is made of these and of numbers alone being one of them."""
        root, values = with_few_own(scored.root, own, table.n_variables)
        if root == scored.root:
            return scored, own
        return self._judged(Scored(root, scored.loss, scored.length), table.extended(values)), values

    def _tidied(self, scored: Scored, rows: SearchRows) -> Scored:
        """The same formula in normal form without terms that rounding swallows, where that is no longer."""
        if scored.root.size > self.config.front.largest_tidied:
            return scored
        judged = rows.polished
        root = clean(without_dead_terms(scored.root, judged), judged)
        if root is None or root == scored.root:
            return scored
        # a formula that lives on cancelling digits loses its value in normal form: take the loss anew
        loss = _loss_on(root, judged)
        tidy = Scored(root, loss, description_length(root, loss, judged))
        return tidy if tidy.complexity <= scored.complexity and tidy.length <= scored.length else scored


def _loss_on(root: Node, judged: JudgedRows) -> float:
    with np.errstate(all="ignore"):
        residual = Expression(root, judged.names)(judged.X) - judged.target
        return float(np.average(residual**2, weights=judged.weights))


def _is_kept(root: Node, known: Knowledge | None) -> bool:
    """Whether what the user knows lets a formula stand on the front."""
    return known is None or (known.admits(root) and known.keeps(root))


def _beats(simpler: Scored, longer: Scored) -> bool:
    """Whether a longer member is no better than a formula that comes in."""
    return longer.unseen >= simpler.unseen or longer.loss >= simpler.loss


def _is_sum(root: Node) -> bool:
    """Whether a formula is a sum of several columns' multiples."""
    columns = linear_columns(root)
    return columns is not None and len(columns) > 1


def _mean(rows: SearchRows) -> Scored:
    """The constant that fits best, on the rows that all other formulas are judged on."""
    judged = rows.polished
    mean = Constant(float(np.average(judged.target, weights=judged.weights)))
    loss = float(np.average((judged.target - mean.value) ** 2, weights=judged.weights))
    unseen = float(np.average(left_out_squares(mean, judged.X, judged.target, judged.weights), weights=judged.weights))
    return Scored(mean, loss, unseen_length(mean, unseen, judged), unseen=unseen)
