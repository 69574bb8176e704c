"""`report.html` of a classifier: how often each class is recognised, what is taken for what, the formulas of the logits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gmeql._version import __version__
from gmeql.model.targets import as_list
from gmeql.report import asset, environment, policy
from gmeql.report.content import moment_text, safe_json
from gmeql.report.numbers import four_digits
from gmeql.search.events import reason_text

if TYPE_CHECKING:
    from gmeql.estimator import GMEQLClassifier

MOST_COUNTED = 20
"""Classes whose table of what is taken for what is shown; of more it is wider than a page."""


def explained(model: GMEQLClassifier) -> list[str]:
    """The class that each formula is the logit of."""
    classes = [str(label) for label in model.classes_]
    return classes[1:] if len(classes) == 2 else classes


def build(
    model: GMEQLClassifier,
    X: Any,
    labels: np.ndarray,
    *,
    target: str,
    source: str = "",
    pages: Sequence[str] = (),
    created: str = "",
    command: str = "",
) -> str:
    """The page as one HTML text, about the rows `X` [N, V] with their classes `labels` [N].

    `pages` are the addresses of each formula's own page.
    """
    from markupsafe import Markup

    classes = [str(label) for label in model.classes_]
    codes = np.searchsorted(model.classes_, labels)
    chances = model.predict_proba(X)
    told = np.searchsorted(model.classes_, model.predict(X))
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, (codes, told), 1)
    log_loss = -float(np.mean(np.log(np.maximum(chances[np.arange(len(codes)), codes], np.finfo(float).tiny))))
    usual = np.bincount(codes, minlength=len(classes)) / len(codes)
    guessed = -float(np.sum(usual * np.log(usual, where=usual > 0, out=np.zeros_like(usual))))
    formulas = [
        {
            "label": label,
            "text": str(expression),
            "mathml": Markup(expression._repr_html_()),
            "complexity": expression.complexity,
            "page": page,
        }
        for label, expression, page in zip(explained(model), as_list(model.expression_), pages, strict=True)
    ]
    reasons = as_list(getattr(model, "stop_reason_", ""))
    script = asset("charts.js") + asset("motion.js")
    return (
        environment()
        .get_template("classes.html.j2")
        .render(
            title=f"Classes of {target}",
            subtitle=" · ".join(part for part in (source, moment_text(created)) if part),
            target=target,
            formulas=formulas,
            n_classes=len(classes),
            sharpness=four_digits(model.sharpness_) if hasattr(model, "sharpness_") else "",
            figures=[
                ("told right", f"{np.mean(codes == told):.1%} of {len(codes):,} rows"),
                ("log loss", four_digits(log_loss)),
                ("log loss of shares alone", four_digits(guessed)),
            ],
            classes=classes,
            counts=counts.tolist() if len(classes) <= MOST_COUNTED else [],
            shares=[f"{counts[i, i] / max(counts[i].sum(), 1):.1%}" for i in range(len(classes))],
            command=command,
            seconds=f"{model.seconds_:.1f}",
            candidates=f"{model.candidates_:,}",
            reason=", ".join(dict.fromkeys("stopped" if r == "interrupted" else reason_text(r) for r in reasons)),
            version=__version__,
            style=Markup(asset("style.css")),
            script=Markup(script),
            csp=policy(script),
            payload=Markup(safe_json({"courses": [], "phase": None, "time": ""})),
        )
    )
