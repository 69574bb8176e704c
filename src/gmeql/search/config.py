"""Everything that steers a fitted search: one frozen config, its numbers with their sources, its tables of choices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from gmeql.fitters.threads import threads_for
from gmeql.knowledge.knowledge import Knowledge
from gmeql.network.architecture import Architecture
from gmeql.search.losses.losses import find_loss

DEVICES = {
    "auto": "the processor; an accelerator once it is ready and proves faster, where time is the budget",
    "cpu": "the processor",
    "gpu": "the CUDA devices of this machine, through CuPy",
}
"""The one table of places where constants are fitted."""

RENAMED = {
    "rungs": "stage_ages",
    "rewarded_per_rung": "rewarded_per_stage",
    "polished_per_rung": "polished_per_stage",
    "transforms": "readings",
}
"""Fields that earlier versions stored under another name."""


@dataclass(frozen=True)
class IslandConfig:
    """Numbers of an island's life. Sources: the paper (P), a trial on b1-b8 and physics formulas (T)."""

    candidates_per_step: int = 128  # T: 128 to 256
    capacity: int = 400  # P
    power_law_exponent: float = 1.0  # T: 1/rank; the paper's 1.5 crowds the front ranks
    resample_fraction: float = 0.2  # P
    mean_changes: float = 1.0  # re-sampled connections beyond the first, on average
    insert_share: float = 0.3  # candidates made by putting an idle node into a connection
    bypass_share: float = 0.1  # by taking a node out
    exchange_share: float = 0.15  # by letting a node of another function take over
    complexity_classes: float = 0.5  # share of draws ranked among elites of like complexity
    fresh_share: float = 0.1  # T
    cross_share: float = 0.3  # T
    inherit_share: float = 0.5  # T: half the candidates inherit their constants
    jitter: float = 0.5  # T
    max_tries: int = 4  # starts given to one structure whose constants are not linear
    learning_rate: float = 0.1  # T: share of the elites' frequencies taken over per step
    exploration: float = 0.1  # T: uniform share of the choice probabilities
    max_steps: int = 10  # T: Levenberg-Marquardt steps
    tolerance: float = 1e-4  # T: relative gain of a step below which a fit ends
    finish_steps: int = 40
    life: int = 60  # T: steps
    patience: int = 20  # T: steps without a gain of 1 %
    min_gain: float = 0.01
    max_nesting: int = 0
    with_offset: bool = True


@dataclass(frozen=True)
class FrontConfig:
    """Numbers by which formulas reach the front. Losses are relative to the target's spread or to rounding level."""

    near_exact: float = 1e-7  # error of an island's best formula from which it is taken to convergence
    exact: float = 1e-10  # error of a converged formula from which it is cut to shape at once: near misses reach 1e-8
    exact_steps: int = 60  # steps to convergence
    short: int = 20  # complexity up to which an exact formula ends the search whatever its constants
    short_written: int = 40  # ... and direct methods' look where all its constants are numbers people write
    own_size: float = 1e-7  # error of every single row, relative to its own target, up to which a formula is exact
    cancelled: float = 1e-14  # ... or relative to the terms that cancel there
    least_own: float = 0.5  # share of the rows that must agree in their own size
    short_loose: int = 1  # constants nobody would write down that a short exact formula may have; with more of them it
    look_on_briefly: int = 5_000  # may have a shorter twin, and the search looks on for this many candidates
    look_on: float = 2.0  # a longer one may have a shorter twin: look on until the candidates have grown by this factor
    look_on_candidates: int = 10_000  # and to at least this many times it,
    look_on_most: int = 100_000  # but for no more than so many: an accelerator has drawn millions by then
    hardly_felt: float = (
        1e-6  # what a loose constant's whole size changes any row by, below which it may be of a series
    )
    least_gain: float = 1e-6  # share of the loss that a more complex formula must save to be shown beside a simpler one
    gain_nats: float = 0.5  # fall of the description length that counts as a gain
    class_gain: float = 0.98  # loss of an elite, relative to a simpler one's, up to which both are offered
    largest_tidied: int = 60  # nodes up to which a formula is put in normal form while the search goes on
    tidied_off: int = 6  # symbols that normal form takes off a formula as a rule
    points_between: int = 1000  # points of each kind at which a formula is looked at between the rows
    points_seed: int = 0
    pole_price: float = 20.0  # a formula with a pole among the rows must fit this much better
    unseen_node_nats: float = (
        1.0  # price of a unit of complexity beside errors on unseen rows, half of what polishing asks
    )
    min_wave_rows: int = 8  # rows that the fastest wave is judged by where there are fewer
    offered_each: int = 5  # formulas of a kind that are offered where constraints may refuse the first
    light_cuts_kept: int = 4  # formulas refitted of those that a few cuts made
    islands_at_end: int = 2  # islands whose best formula is polished when the search ends
    final_steps: int = 3  # steps by which the front is refitted on all rows
    judged_at_least: int = 2  # members of which that is done whatever the time
    told_share: float = 1.3  # of that refit's time, which ranking a member and telling its promise take afterwards


@dataclass(frozen=True)
class ClockConfig:
    """How `max_time` is shared out between search, symmetries and what is kept for the end."""

    polish_share: float = 0.2  # kept for polishing the front,
    polish_seconds: float = 3.0  # but no more than this
    polish_again: float = 1.5  # times as long as it took is kept where it took less: fronts grow
    worth_seconds: float = 0.3  # for which a search goes on once the front is polished
    device_seconds: float = 0.5  # of that for what accelerators found while the front was polished
    judge_share: float = 0.06  # kept for what the front promises and for the sums beside it,
    judge_seconds: float = 0.6  # but no more than this
    outlier_share: float = 0.06  # kept for the formula that outliers do not move (`model/choice/unmoved.py`),
    outlier_seconds: float = 0.5  # but no more than this
    refit_share: float = 0.5  # kept for refitting the front of a large table, at most
    seconds_per_row: float = 1e-5  # what that refit and the judgement of its formulas take, roughly
    symmetry_share: float = 0.15  # given to the look for symmetries, at most,
    formula_share: float = 0.0025  # and to each for those of the leading formulas, of which the first is always asked
    islands_share: float = 0.04  # the islands' alone: what they find quickly need not wait for symmetries and methods,
    islands_candidates: int = 30_000  # but no more than so many candidates
    looks_share: float = 0.08  # all looks together, with what becomes of what they see: later ones have what is left
    direct_share: float = 0.0902  # given to direct methods, of which all that follow are shares
    soon_share: float = 0.0235  # ... and so much beside that to each of those quick ones,
    early_share: float = 0.38  # of which so much is for those that are asked before symmetries are looked for,
    noisy_shares: tuple[float, ...] = (
        0.245,
        0.094,
    )  # so much for each of the smallest tables where even these are noisy,
    first_share: float = 0.574  # so much for both together and for all others, with what becomes of what they see,
    first_least: float = 0.167  # but so much for those others in any case,
    beside_share: float = 0.376  # and more where other processes look, which keep nobody waiting;
    later_share: float = 0.03  # the least for those that are asked again each time when
    least_look: float = 0.05  # what a look by all of them takes to begin: with less, none is begun
    later_from: tuple[float, ...] = (0.25, 0.6)  # these shares of the budget are spent,
    noisy_later_share: float = 0.132  # or this where the target is noisy: of 20 s enough to see a small table,
    noisy_columns: int = (
        4  # which is one of so many columns at most: no noisy law of 61 left more to its smallest table
    )
    last_shares: tuple[float, ...] = (0.2165, 0.06)  # the least for each of those that are asked last
    growing_from: tuple[float, ...] = (0.2, 0.45, 0.7)  # when those are asked that go on from formulas,
    growing_share: float = 0.0268  # with so much each time
    later_candidates: int = 100_000  # candidates of which these are shares where nothing is limited
    trail_share: float = 0.2  # kept for the first of them that has seen part of a formula,
    small_shares: tuple[float, ...] = (0.3, 0.15)  # of which so much for each of the smallest tables
    small_noisy_shares: tuple[float, ...] = (0.15,)  # or so much where they are noisy,
    small_columns: int = 3  # that have so many columns at most
    candidates_per_second: float = 4000.0  # of one core, by which a budget of candidates is turned into such a share
    direct_seconds: float = 3.0  # where neither time nor candidates are limited


@dataclass(frozen=True)
class SearchConfig:
    """Everything that steers a search; numbers of single parts stand in `island`, `front` and `clock`."""

    functions: tuple[str, ...] | None = None
    architecture: Any = None
    max_time: float | None = None
    max_candidates: int | None = None
    max_complexity: int = 60
    most_summed: int | None = None  # columns of a sum with factors drawn towards 0; None: as max_complexity allows
    knowledge: Knowledge | None = None  # what the user knows of the target
    loss: Any = "squared"  # a name of `losses.LOSSES`, or a function of (y, f)
    has_classes: bool = (
        False  # the target's chances, above or below 1/2, stand for classes: those are what formulas meet
    )
    n_jobs: int | None = None
    device: str = "auto"
    most_lookers: int = 8  # processes beside the search that look at the data, where time is the budget,
    most_lookers_beside_cards: int = 14  # where accelerators have the islands: the cores have nothing else;
    lookers_patience: float = 1.0  # from so many seconds or the islands' share on: what is found soon needs none;
    lookers_patience_beside_cards: float = 0.15  # there the cores have nothing else
    lookers_least_time: float = 3.0  # they take a second to start, which is not worth it where max_time is less
    lookers_late: float = 2.0  # and what is not there after so many is not waited for
    most_boost: float = 4.0  # times as long as the search itself may they look, at most: they keep nobody waiting
    islands: int = 4  # in flight together; on an accelerator all are
    device_candidates: int = 1024  # candidates of an island's step on an accelerator, in the first generations
    later_device_candidates: int = 1024  # and in later ones: of 2,048 most were structures that had been tried
    device_islands: int = 4  # times as many islands in a generation there, until there were
    early_device_islands: int = 112  # so many: each takes the host a millisecond, which it needs for looks at first;
    later_device_islands: int = 448  # and so many in later ones
    device_generations: int = 10  # on the way there at a time, at most,
    device_open: int = 1344  # and so many of their islands open: as some get small, others set out;
    early_device_generations: int = 2  # until then so many: side by side all end late
    device_offered: int = (
        8  # the best islands of a stage there, whose elites are offered to the front: the host is slow
    )
    device_tables: int = 4  # tables whose formulas are met in the middle there, the one as it is among them
    device_ended: int = 3  # generations that are fetched before the front is polished: those that lead
    device_patience: float = 2.0  # seconds without an exact formula after which "auto" looks for an accelerator
    islands_per_generation: int = 32  # where smaller tables were found
    few_islands: int = 14  # islands of a generation elsewhere, which skips the first stage
    stage_ages: tuple[int, ...] = (3, 8, 18, 36, 80)  # ages at which the worse half of a generation is closed
    long_stage: float = 0.5  # share of all candidates that no generation begins with: between stages data are looked at
    rewarded_per_stage: int = 3  # islands whose view and reading are drawn more often from then on
    polished_per_stage: int = 1  # islands whose best formula is cut to shape, once the loss has settled
    polished_at_end: int = 5
    large_fall: float = 0.5  # share of the loss it falls to that is worth a look: at an island's best, at a stage's end
    max_idle_rounds: int = 50
    search_rows: int = 256  # rows that candidates are fitted on; grows while nothing exact is found
    max_search_rows: int = 2048
    row_growth: int = 2  # by this factor
    screen_rows: int = 64  # rows that a candidate must first do well on
    polish_rows: int = 2000
    light_cuts: int = 4  # rounds of cutting for a formula that is not exact
    identity_share: float = 0.5  # islands that read the target as it is
    plain_islands: int = 2  # the first islands, which read the columns and the target as they are
    largest_miss: float = 2.0  # spreads of the target that one row may miss by where islands are compared, at most
    prior_gain: float = 1.0  # what a view and reading is taken to have earned before it was tried
    prior_tried: float = 2.0  # in so many islands
    max_columns: int = 30  # columns an island sees of a wide table
    table_bits: int = 21  # remembered fingerprints, as a power of two
    patience: int | None = None  # candidates without a better formula after which the search ends
    least_reweighing: float = 0.02  # mean change of the weights under a robust loss for which the islands begin anew
    least_reweighing_at_end: float = 1e-4  # ... and for which constants are fitted anew: losses are told to four digits
    reweighings_at_end: int = 20  # times that weights and constants take turns at the end, at most
    skip: bool = True
    readings: bool = True  # of the target besides itself
    symmetries: bool = True  # look for smaller tables once the first stage found nothing exact
    direct: tuple[str, ...] | None = None  # methods of `direct/` to ask then; None: all
    formulas_viewed: int = 3  # leading formulas whose own symmetries are asked for tables, later on
    formulas_filled: int = 20  # leading formulas whose parts are asked what would have to stand there
    tables_looked_at_again: int = 2  # each time, by methods for noisy targets
    raw_share: float = 0.4  # islands that read the columns as they are, where smaller tables were found
    island: IslandConfig = field(default_factory=IslandConfig)
    front: FrontConfig = field(default_factory=FrontConfig)
    clock: ClockConfig = field(default_factory=ClockConfig)

    def __post_init__(self) -> None:
        for name in ("max_time", "max_candidates", "patience"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be positive or None, got {value!r}")
        if self.device not in DEVICES:
            raise ValueError(f"device must be one of {', '.join(DEVICES)}, got {self.device!r}")
        find_loss(self.loss)
        if self.n_jobs == 0:
            raise ValueError("n_jobs must be None, a number of threads or -1 (every core), got 0")
        if self.max_complexity < 1:
            raise ValueError(f"max_complexity must be at least 1, got {self.max_complexity!r}")

    @property
    def n_threads(self) -> int:
        """Threads that `n_jobs` stands for: None and -1 are all, -2 all but one."""
        return threads_for(self.n_jobs)

    @property
    def looked_alone_for(self) -> float:
        """Seconds before processes are started that look beside the search."""
        if self.max_time is None:
            return math.inf
        patience = self.lookers_patience_beside_cards if self.device == "gpu" else self.lookers_patience
        return min(patience, self.clock.islands_share * self.max_time)

    @property
    def n_lookers(self) -> int:
        """Processes that look beside the search: half of the threads, none where there is one; nearly all of them where
        an accelerator has the islands."""
        if self.device == "gpu":
            return max(min(self.n_threads - 2, self.most_lookers_beside_cards), self.n_threads // 2)
        return min(self.n_threads // 2, self.most_lookers)

    def is_stage_long(self, stage: int, n_islands: int) -> bool:
        """Whether so many islands would take most of a budget of candidates to reach the end of a stage."""
        if self.max_candidates is None or stage >= len(self.stage_ages):
            return False
        needed = n_islands * self.stage_ages[stage] * self.island.candidates_per_step
        return needed > self.long_stage * self.max_candidates

    @property
    def lookers_boost(self) -> float:
        """Times that direct methods may take longer where others look."""
        return min(2.0 * self.n_lookers, self.most_boost)

    @property
    def island_in_use(self) -> IslandConfig:
        """What islands go by: without an offset of their own where what is known rules it out."""
        if self.knowledge is not None and self.knowledge.rules_out_offsets:
            return replace(self.island, with_offset=False)
        return self.island

    def device_island(self, *, later: bool) -> IslandConfig:
        """What islands on an accelerator go by, in the first generations or a later one."""
        per_step = self.later_device_candidates if later else self.device_candidates
        return replace(self.island_in_use, candidates_per_step=per_step)

    @property
    def is_plain(self) -> bool:
        """Whether nothing but squared errors was asked for: no other loss, nothing known of the formula."""
        return self.loss == "squared" and self.knowledge is None and self.architecture is None

    @property
    def outlier_seconds(self) -> float:
        """Seconds kept for the formula that outliers do not move, which is asked for where nothing else was."""
        if not self.is_plain:
            return 0.0
        if self.max_time is None:
            return math.inf
        return min(self.clock.outlier_share * self.max_time, self.clock.outlier_seconds)

    @property
    def direct_seconds(self) -> float:
        """Seconds of one core that direct methods may take."""
        return self.direct_seconds_with()

    @property
    def looks_seconds(self) -> float:
        """Seconds that all looks at the data may take together; what their work is worth has an end of its own where no time is
        the budget."""
        return math.inf if self.max_time is None else self.clock.looks_share * self.max_time

    @property
    def trail_seconds(self) -> float:
        """Seconds kept for the direct method that has seen part of a formula."""
        return self.direct_seconds * self.clock.trail_share / self.clock.direct_share

    def direct_seconds_with(self, *, groups: int = 1) -> float:
        """The same where every candidate is fitted to so many groups, and takes as many times longer."""
        numbers = self.clock
        given = [] if self.max_time is None else [self.max_time]
        given += [] if self.max_candidates is None else [groups * self.max_candidates / numbers.candidates_per_second]
        return numbers.direct_share * min(given) if given else numbers.direct_seconds

    def to_dict(self) -> dict[str, Any]:
        """The config as plain scalars, lists and dictionaries."""
        data = asdict(replace(self, knowledge=None))
        architecture = self.architecture
        data["architecture"] = architecture.to_dict() if isinstance(architecture, Architecture) else architecture
        data["loss"] = self.loss if isinstance(self.loss, str) else "squared"  # code is never stored
        data["knowledge"] = None if self.knowledge is None else self.knowledge.to_dict()
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SearchConfig:
        """What `to_dict` gave, of this version or an earlier one: what that did not know has its default."""
        values = {RENAMED.get(name, name): value for name, value in data.items()}
        for name, part in (("island", IslandConfig), ("front", FrontConfig), ("clock", ClockConfig)):
            given: dict[str, Any] = {
                key: tuple(v) if isinstance(v, list) else v for key, v in values.get(name, {}).items()
            }
            values[name] = part(**given)
        values["stage_ages"] = tuple(values["stage_ages"])
        for name in ("functions", "direct"):
            values[name] = None if values.get(name) is None else tuple(values[name])
        if isinstance(values["architecture"], dict):
            values["architecture"] = Architecture.from_dict(values["architecture"])
        if values.get("knowledge") is not None:
            values["knowledge"] = Knowledge.from_dict(values["knowledge"])
        return cls(**values)


def stored_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings of a checkpoint (name and `repr` of each field) under today's names; what was not stored has its default."""
    defaults = SearchConfig()
    known = {one.name: repr(getattr(defaults, one.name)) for one in fields(defaults)}
    return known | {RENAMED.get(name, name): text for name, text in settings.items()}
