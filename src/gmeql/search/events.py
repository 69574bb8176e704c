"""What a search tells the world: members of its front, progress after each round, why it ended."""

from __future__ import annotations

from dataclasses import dataclass

from gmeql.formula.expression import Expression
from gmeql.search.groups.table import OwnConstants
from gmeql.search.judging.deferred import OUTLOOK, OutlookField

REASONS = {
    "exact": "a formula is exact",
    "max_candidates": "all candidates are tried",
    "max_time": "time is up",
    "no gain": "nothing better for a long time",
    "exhausted": "every formula of these networks is tried",
}
"""Why a search ends by itself, and what people are told. Whoever ends it from outside gives a reason of their own."""


def reason_text(reason: str) -> str:
    """Why a search ended, for people."""
    return REASONS.get(reason, str(reason))


@dataclass(frozen=True)
class Member:
    """One formula of the front; `loss` is the weighted root mean squared error in the target's units.

    `outlook` is what it promises on unseen rows; it is known once the search has ended.
    """

    expression: Expression
    loss: float
    complexity: int
    outlook: OutlookField = OUTLOOK
    n_own: int = 0
    """Constants of groups' own that it has, all groups together."""


@dataclass(frozen=True)
class Progress:
    """What a search reports after each round.

    `front` goes from simple to accurate. `best` is the member of it that describes the data most briefly: residuals,
    constants and symbols together take the fewest nats (`polish.description_length`). It is what the search believes
    now, seldom the most accurate member, which is `front[-1]`.
    """

    elapsed: float
    candidates: int
    rate: float
    islands: int
    front: tuple[Member, ...]
    best: Member
    done: bool = False
    reason: str = ""
    own: OwnConstants | None = None
    """Constants of each group's own, where the rows have groups."""
    note: str = ""
    """What the search waits for, in the one event that may come before it begins."""
