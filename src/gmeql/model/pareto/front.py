"""The Pareto front of loss against complexity, and what is chosen from it.

A search ends with many formulas. Those that nothing simpler beats make the front; `Front.select` names the one to use.
Everything here is pure: no formula is changed.

Legend: `N` rows, `V` columns, `K` free constants of one expression.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from gmeql.formula.constants import free_constants
from gmeql.model.pareto import rules
from gmeql.model.pareto.listing import html_table, members_frame
from gmeql.model.pareto.member import FrontMember, beyond_front, checked_fields, checked_number, score_beside
from gmeql.model.pareto.pricing import repriced
from gmeql.model.pareto.validation import simplest_valid
from gmeql.search.judging.deferred import carried
from gmeql.search.judging.structure import linear_columns, unwritten_factors
from gmeql.search.losses.losses import LOSSES, Loss
from gmeql.search.polish.scoring import length_in_nats

if TYPE_CHECKING:
    from gmeql.search.events import Member


@dataclass(frozen=True, repr=False)
class Front(Sequence[FrontMember]):
    """Immutable Pareto front, simplest member first; each further one is more complex and has a smaller loss.

    Build one with `Front.from_members`. `rows`, `target_spread` and `target_largest` describe the data the losses
    were measured on (number of rows, standard deviation and largest size of the target); the selection rule needs them.
    """

    members: tuple[FrontMember, ...]
    rows: float
    target_spread: float
    target_largest: float
    others: tuple[FrontMember, ...] = ()
    """Formulas beyond the front: kept for a while, then beaten; smallest loss first."""
    loss: str = "squared"
    """What the members' losses are: a name of `search.losses.LOSSES`, or "own" for a loss of the user's."""

    def __post_init__(self) -> None:
        if not self.members:
            raise ValueError("a front needs at least one member with a finite loss; got none")

    @classmethod
    def from_members(
        cls,
        members: Iterable[Member | FrontMember],
        *,
        rows: float,
        target_spread: float,
        target_largest: float,
        beaten: Iterable[Member | FrontMember] = (),
        loss: str = "squared",
    ) -> Front:
        """Sort `members` (anything with `expression` and `loss`; an `outlook` is taken along) into a front and the others.

        Complexity is always counted on the expression that is kept: what a search noted down may be that of a form
        before its constants were rounded, and a file whose figures contradict each other cannot be opened again.
        Members with a loss that is not finite are left out. Of equal complexity only the best stays, and a more complex
        one only with a smaller loss. `beaten` are further formulas that only ever go to the others.
        """
        finite = [m for m in members if math.isfinite(m.loss)]
        finite.sort(key=lambda m: (m.expression.complexity, m.loss))
        chosen: list[FrontMember] = []
        others = [beyond_front(m) for m in beaten if math.isfinite(m.loss)]
        floor = rules.rounding_level(target_spread, target_largest)
        for m in finite:
            if chosen and (m.loss >= chosen[-1].loss or m.expression.complexity == chosen[-1].complexity):
                others.append(beyond_front(m))
                continue
            outlook, figures = carried(m), (float(m.loss), m.expression.complexity, 0.0, len(chosen))
            member = FrontMember(m.expression, *figures, outlook, getattr(m, "n_own", 0))
            chosen.append(replace(member, score=score_beside(chosen, member, floor), outlook=outlook))
        others.sort(key=lambda m: (m.loss, m.complexity))
        return cls(tuple(chosen), float(rows), float(target_spread), float(target_largest), tuple(others), loss)

    def with_sums(self, sums: Iterable[Member]) -> Front:
        """The front with those of some sums that would be chosen from it: the one that describes the rows most briefly, and
        the one with factors drawn towards 0. Shorter formulas that fit better, but are passed over for it, step back."""
        if not self.has_outlooks or self._exact_members():
            return self
        figured = [FrontMember(m.expression, m.loss, m.expression.complexity, 0.0, -1, m.outlook) for m in sums]
        members, fitted = repriced(self.members, [m for m in figured if not m.is_shrunk])
        front, length = replace(self, members=members), self.description_length
        shortest = length(front.briefest())
        brief = sorted((m for m in fitted if m.is_supported and length(m) < shortest), key=length)
        tries = ((front.joined(m), m.expression) for m in brief)  # some gain more than is sure, and are not chosen
        found = next((joined for joined, e in tries if joined.briefest().expression is e), front)
        for m in (m for m in figured if m.is_shrunk):
            found = found.joined(m) if found._is_better(m, found.briefest()) else found
        return found

    def joined(self, member: FrontMember) -> Front:
        """The front with one more; those that would leave no place for it are behind."""
        back = [m for m in self if m.loss <= member.loss and m.complexity <= member.complexity]
        return Front.from_members(
            [*(m for m in self if m not in back), member],
            rows=self.rows,
            target_spread=self.target_spread,
            target_largest=self.target_largest,
            beaten=[*back, *self.others],
            loss=self.loss,
        )

    @overload
    def __getitem__(self, index: int) -> FrontMember: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[FrontMember, ...]: ...
    def __getitem__(self, index: int | slice) -> FrontMember | tuple[FrontMember, ...]:
        try:
            return self.members[index]
        except IndexError:
            raise IndexError(
                f"index={index!r} is not on the front, which has {len(self)} members; use 0 to {len(self) - 1}"
            ) from None

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[FrontMember]:
        return iter(self.members)

    def __repr__(self) -> str:
        head = f"Front of {len(self)} formulas\n{'complexity':>10}  {'loss':>10}  {'score':>7}  formula"
        lines = [f"{m.complexity:>10d}  {m.loss:>10.4g}  {m.score:>7.3g}  {m}" for m in self]
        return "\n".join([head, *lines])

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_html(self, selected: int | None = None) -> str:
        """The front as an HTML table, every text escaped; row `selected` is marked."""
        return html_table(self, selected)

    def to_frame(self, *, others: bool = False) -> Any:
        """The front as a data frame (pandas if it is installed, else polars): complexity, loss, score, formula.

        With `others=True`, the formulas beyond the front follow, with index -1.
        """
        return members_frame([*self, *(self.others if others else ())])

    def select(
        self,
        rule: str | Callable[[Front], int | FrontMember] = "best",
        *,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> FrontMember:
        """Choose one member.

        - `"best"`: shortest description of the data. Formula and residuals are written down together, in nats:
          `N/2 log(mse) + K/2 log(N) + c`, with `K` fitted constants (factors of 1 that nothing but the choice of the
          formula says counted in), `c` the complexity (of a sum of columns what it takes to say which, if that is less;
          of other forms 3 more), and `mse` the squared error to expect on unseen rows (minimum description length:
          Rissanen 1978; for formulas Bartlett, Desmond and Ferreira 2022); members whose gain over a simpler one rests
          on few rows are passed over, and a gain of z standard errors counts 2 z² nats at most. A sum of all columns
          with factors drawn towards 0 (`search/sums/shrinking.py`) is taken where it errs less on rows left out, or hardly
          more and is briefer, by its likelihood whatever the factors are; and the formula of all rows but outliers where
          it stands there (`unmoved.py`). Where nobody looked beyond the rows, `mse` is the residual sum of squares over
          `N - K`, and a unit of complexity costs 2. Where members reach rounding level there is no noise to weigh
          against, and the simplest of those wins.
        - `"accurate"`: smallest loss.
        - `"simple"`: the largest score, the drop of log(loss) per unit of complexity (the knee of the front).
        - `"validation"`: needs `X`, `y` that were not trained on: the simplest member within one standard error of the
          best there.
        - a callable: gets this front and returns a member or its index.
        """
        if callable(rule):
            return self._selected_by(rule)
        if rule == "best":
            return self._best()
        if rule == "accurate":
            return self.members[-1]
        if rule == "simple":
            return max(self.members, key=lambda m: (m.score, -m.complexity))
        if rule == "validation":
            if X is None or y is None:
                raise ValueError('rule "validation" needs X and y with rows that were not trained on; pass both')
            w = None if sample_weight is None else np.asarray(sample_weight, float)
            floor = rules.rounding_level(self.target_spread, self.target_largest)
            return simplest_valid(self.members, np.asarray(X, float), np.asarray(y, float), w, self._loss, floor)
        raise ValueError(f"rule={rule!r} is not a selection rule; use one of {list(rules.RULES)} or a callable")

    def description_length(self, member: FrontMember) -> float:
        """Nats that `member` and its residuals take, up to a constant of the data; `inf` without degrees of freedom.

        Where the outlook of every member is known, the residuals are those to expect on unseen rows. Of factors drawn towards
        0 it is that of the mean less what they save beside it, whatever they are.
        """
        fitted = self.n_fitted(member)
        freedom = self.rows - fitted
        floor = rules.rounding_level(self.target_spread, self.target_largest)
        if member.marked is not None and member.marked.saved is not None:
            return self._mean_length(floor) - member.marked.saved
        if freedom < 1:
            return math.inf
        if self.has_own_loss:
            return self._own_length(member, fitted, floor)
        if not self.has_outlooks:
            log_variance = 2.0 * math.log(max(member.loss, floor)) + math.log(self.rows / freedom)
            return length_in_nats(log_variance, fitted, member.complexity, n_rows=self.rows)
        assert member.outlook is not None
        if not math.isfinite(member.outlook.error):
            return math.inf
        # a row left out costs the fit twice what the degrees of freedom account for
        log_variance = 2.0 * math.log(max(member.outlook.left_out, floor)) - 2.0 * max(fitted, 1) / self.rows
        log_variance += math.log(rules.SELECTION.pole_price) if member.outlook.doubtful_pole else 0.0
        log_variance += rules.excess_of_zero(member.expression, self.target_spread) if fitted == 0 else 0.0
        return length_in_nats(log_variance, fitted, 0, n_rows=self.rows) + self._structure_nats(member)

    def _mean_length(self, floor: float) -> float:
        """Of the mean, whether the front holds it or not."""
        if not self.members[0].expression.variables and self.has_outlooks:
            return self.description_length(self.members[0])
        return length_in_nats(2.0 * math.log(max(self.target_spread, floor)), 1, 0, n_rows=self.rows)

    def n_fitted(self, member: FrontMember) -> float:
        """How many constants were fitted to the rows; of factors drawn towards 0, how many free ones they are worth."""
        if member.marked is not None and member.marked.freedom is not None:
            return member.marked.freedom
        fitted = int(free_constants(member.expression).sum()) + member.n_own + unwritten_factors(member.expression.root)
        mean = member.expression.constants if not (member.expression.variables or self.has_own_loss) else ()
        return (
            0 if fitted == len(mean) == 1 and rules.is_next_to_zero(mean[0], self.target_spread, self.rows) else fitted
        )

    def _own_length(self, member: FrontMember, fitted: float, floor: float) -> float:
        """Under a loss with a value of its own: its mean is nats, or a power of the errors' scale."""
        outlook = member.outlook if self.has_outlooks else None
        mean = member.loss if outlook is None else outlook.left_out
        if not math.isfinite(mean):
            return math.inf
        scale_nats = math.log(max(mean, floor)) / (2.0 if self._loss.is_square else 1.0)
        nats = self.rows * (mean if self._loss.mean_is_nats else scale_nats)
        if outlook is None:
            return nats + length_in_nats(0.0, fitted, member.complexity, n_rows=self.rows)
        pole = 0.5 * self.rows * math.log(rules.SELECTION.pole_price) * outlook.doubtful_pole
        if self._loss.mean_is_nats:  # what unseen rows are expected to cost, luck and all: nothing is left to pay for
            return self.rows * outlook.error + pole
        # a row left out costs the fit twice what the degrees of freedom account for
        nats += pole - fitted
        return nats + length_in_nats(0.0, fitted, 0, n_rows=self.rows) + self._structure_nats(member)

    def _structure_nats(self, member: FrontMember) -> float:
        if member.outlook is not None and member.outlook.nats is not None:
            return member.outlook.nats
        return rules.stating_nats(member.expression.root, len(member.expression.names))

    @property
    def _loss(self) -> Loss:
        return LOSSES.get(self.loss.partition(":")[0], LOSSES["absolute"])

    @property
    def has_own_loss(self) -> bool:
        """Whether losses are means of something else than squares, on the scale of that."""
        return self.loss not in LOSSES or self._loss.value is not None

    @property
    def has_outlooks(self) -> bool:
        """Whether it is known of every member what it promises on unseen rows."""
        return all(carried(member) is not None for member in self.members)

    def _best(self) -> FrontMember:
        exact = self._exact_members()
        if exact and not any(m.is_by_chance for m in self.members):
            return exact[0]
        best = next((m for m in self.members if m.is_settled), None) or self.briefest()
        return next((m for m in self.members if m.is_shrunk and not best.is_settled and self._is_better(m, best)), best)

    def briefest(self) -> FrontMember:
        """The shortest description whose gain over simpler ones has support, of those with freely fitted constants."""
        best, *longer = [m for m in self.members if not m.is_shrunk and m.is_supported] or self.members[:1]
        for m in longer:
            best = m if self._is_briefer(m, best) else best
        return best

    def _is_briefer(self, longer: FrontMember, simpler: FrontMember) -> bool:
        """Whether a longer formula describes the rows more briefly; one of the many that are no sum of columns, by no more
        nats than its gain is sure of.

        With normal errors alike on all rows, a gain of z standard errors of the paired difference saves 2 z² nats (less by
        the share of rows that its constants take up). Where errors grow, or few rows hold most of them, the rows say less
        than their number does, and no more than that is counted.
        """
        lengths = self.description_length(simpler), self.description_length(longer)
        z = None if longer.outlook is None else longer.outlook.gain_over(simpler.complexity)
        is_sum = linear_columns(longer.expression.root) is not None
        if is_sum or z is None or not all(map(math.isfinite, (*lengths, z))):
            return lengths[1] < lengths[0]
        saved = lengths[0] - self._stating_nats(simpler) - lengths[1] + self._stating_nats(longer)
        sure = 2.0 * max(z, 0.0) ** 2 * (1.0 - self.n_fitted(longer) / self.rows)
        return lengths[1] + max(saved - sure, 0.0) < lengths[0]

    def _stating_nats(self, member: FrontMember) -> float:
        """What of the description length states the formula itself."""
        if self.has_own_loss and self._loss.mean_is_nats:
            return 0.0
        return length_in_nats(0.0, self.n_fitted(member), 0, n_rows=self.rows) + self._structure_nats(member)

    def _is_better(self, shrunk: FrontMember, best: FrontMember) -> bool:
        """Whether a sum with factors drawn towards 0, which no search chose, errs less on rows left out or is briefer.

        Instead of a constant it must do so more than chance does. Of a sum of some columns, which were chosen out of many,
        the error is that of columns chosen anew, where it is known. Under a likelihood what is promised is all.
        """
        assert shrunk.outlook is not None and best.outlook is not None
        if not best.expression.variables and not rules.is_beyond_chance(shrunk.outlook, best.outlook):
            return False
        is_nats = self.has_own_loss and self._loss.mean_is_nats
        columns = linear_columns(best.expression.root)
        is_briefer = self.description_length(shrunk) < self.description_length(best)
        n_all = len(shrunk.expression.variables)
        if (anew := rules.errs_less_chosen_anew(shrunk.outlook, len(columns or ()), n_all, is_briefer)) is not None:
            return anew
        is_clear = columns is not None and shrunk.outlook.error < rules.SELECTION.clearly_less * best.outlook.error
        errs_less = not is_nats and (is_clear or shrunk.outlook.left_out < best.outlook.left_out)
        is_near = is_nats or shrunk.outlook.left_out < rules.SELECTION.about_as_much * best.outlook.left_out
        return errs_less or (is_near and is_briefer)

    @property
    def exact_level(self) -> float:
        """The loss up to which a formula reproduces the target to rounding."""
        floor = rules.rounding_level(self.target_spread, self.target_largest)
        return max(rules.SELECTION.exact_relative * self.target_spread, floor)

    def _exact_members(self) -> list[FrontMember]:
        """Members whose loss is rounding and nothing else, simplest first."""
        if self.has_own_loss:
            return []
        level = self.exact_level
        free = [m for m in self.members if m.loss <= level and free_constants(m.expression).sum() < self.rows]
        if not free:
            return []
        smallest = max(min(m.loss for m in free), rules.EPS * self.target_largest)
        return [m for m in free if m.loss <= rules.SELECTION.comparable * smallest]

    def _selected_by(self, rule: Callable[[Front], int | FrontMember]) -> FrontMember:
        answer = rule(self)
        if isinstance(answer, FrontMember):
            if answer in self.members:
                return answer
        elif isinstance(answer, (int, np.integer)) and not isinstance(answer, bool):
            return self[int(answer)]
        raise ValueError(
            f"the selection callable returned {answer!r}; it must return a member of the front "
            f"or its index, 0 to {len(self) - 1}"
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready description; `Front.from_dict` reads it back."""
        return {
            "rows": self.rows,
            "target_spread": self.target_spread,
            "target_largest": self.target_largest,
            **({} if self.loss == "squared" else {"loss": self.loss}),
            "members": [m.to_dict() for m in self.members],
        }

    @classmethod
    def from_dict(cls, data: Any) -> Front:
        """Read `to_dict`'s output, trusting nothing: every field checked, `ValueError` for the first that is wrong."""
        fields = checked_fields(
            data, "front", {"rows", "target_spread", "target_largest", "members"}, optional={"loss"}
        )
        measure = fields.get("loss", "squared")
        if not isinstance(measure, str) or len(measure) > 100:
            raise ValueError("front.loss must be the name of a loss")
        figures = [
            checked_number(fields[name], f"front.{name}", low=0.0)
            for name in ("rows", "target_spread", "target_largest")
        ]
        entries = fields["members"]
        if not isinstance(entries, list) or not 1 <= len(entries) <= MAX_MEMBERS:
            raise ValueError(f"front.members must be a list of 1 to {MAX_MEMBERS} members")
        members = [
            FrontMember.from_dict(entry, index=position, where=f"front.members[{position}]")
            for position, entry in enumerate(entries)
        ]
        rows, spread, largest = figures
        front = cls.from_members(members, rows=rows, target_spread=spread, target_largest=largest, loss=measure)
        if [id(m.expression) for m in front] != [id(m.expression) for m in members]:
            raise ValueError(
                "front.members is not a Pareto front: from each to the next complexity rises and loss falls"
            )
        return front


MAX_MEMBERS = 10_000
