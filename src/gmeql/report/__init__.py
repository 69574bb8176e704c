"""`report.html`: one page, complete in itself, about one run. `build` makes it; it loads nothing and sends nothing.

All text from outside (column names, cells, paths) enters through jinja2's escaping or as JSON whose angle brackets are
escaped; scripts other than the page's own are forbidden by its content security policy.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmeql.report.content import Content, assemble, safe_json
from gmeql.report.numbers import four_digits, share_text

if TYPE_CHECKING:
    from jinja2 import Environment

    from gmeql.knowledge.knowledge import Knowledge
    from gmeql.model.pareto.front import Front
    from gmeql.search.groups.table import OwnConstants
    from gmeql.tables.training import Training

__all__ = ["build"]

ASSETS = Path(__file__).parent / "assets"
LEAST_SHARE = 0.0005  # of the evidence, of a formula nearly as good: less would be written as 0.0 %


def asset(name: str) -> str:
    """The text of a file that ships with the report."""
    return (ASSETS / name).read_text(encoding="utf-8")


@cache
def environment() -> Environment:
    """Templates with escaping always on."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("gmeql.report", "assets"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )


def script_hash(script: str) -> str:
    """The hash by which a content security policy allows one inline script."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'"


def policy(script: str) -> str:
    """Nothing from elsewhere, no script but this one. Drawings carry style attributes, hence unsafe-inline there."""
    allowed = f"style-src 'unsafe-inline'; script-src {script_hash(script)}"
    return f"default-src 'none'; img-src data:; {allowed}; base-uri 'none'; form-action 'none'"


def build(
    *,
    front: Front,
    selected: int,
    training: Training,
    history: Sequence[Mapping[str, Any]] = (),
    settings: Mapping[str, Any] | None = None,
    versions: Mapping[str, str] | None = None,
    created: str = "",
    command: str = "",
    seeded_from: str = "",
    knowledge: Knowledge | None = None,
    own: OwnConstants | None = None,
    others: Sequence[Mapping[str, Any]] = (),
) -> str:
    """The page as one HTML text.

    Args:
        front, selected: the formulas, and the index of the chosen one.
        training: the rows they were fitted to, with the notes of what was done to them.
        history: progress records, as progress.jsonl holds them.
        settings, versions, created, command: what "How to repeat it" tells.
        seeded_from: name of the run whose formulas this one kept.
        knowledge: what was known before the search; the page states the units of constants and what is kept.
        own: constants of each group's own, where the rows have groups.
        others: formulas that describe the rows nearly as well, by falling `weight`, their share of the evidence.
    """
    from markupsafe import Markup

    if isinstance(front, list):
        raise ValueError(
            f"front holds {len(front)} targets and a report shows one; build one for each, as in front=model.front_[0], "
            "selected=model.selected_index_[0]"
        )
    content: Content = assemble(
        front, selected, training, history, settings or {}, versions or {}, created, command, knowledge, own
    )
    script = asset("charts.js") + asset("report.js")
    template = environment().get_template("report.html.j2")
    return template.render(
        **content.view,
        seeded_from=seeded_from,
        others=[
            {"share": share_text(one["weight"]), "loss": four_digits(one["loss"])}
            | {key: one[key] for key in ("complexity", "formula")}
            for one in others
            if one["weight"] >= LEAST_SHARE
        ],
        style=Markup(asset("style.css")),
        script=Markup(script),
        csp=policy(script),
        payload=Markup(safe_json(content.payload)),
    )
