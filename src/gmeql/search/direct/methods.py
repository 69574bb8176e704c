"""The one table of direct methods, in the order in which they are asked."""

from __future__ import annotations

from gmeql.search.direct import rational
from gmeql.search.direct.table import DirectMethod

DIRECT_METHODS: dict[str, DirectMethod] = {
    "rational": rational.propose,
}
"""By name; those that are cheap where they find nothing stand first."""
