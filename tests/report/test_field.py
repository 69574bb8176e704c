"""The page about laws of fields."""

from __future__ import annotations

import json
import re

import numpy as np
from heat import T, U, X, heat_model

from gmeql import GMEQLField
from gmeql.report.field import build


def test_the_page_shows_laws_and_courses_over_space() -> None:
    page = build(heat_model(), source="heat.npz", command="gmeql field heat.npz")
    assert page.count("<script") == 2 and "default-src &#39;none&#39;" in page and "How to repeat it" in page
    data = json.loads(re.search('id="data">(.*?)</script>', page).group(1))
    assert data["time"] == "x" and data["courses"][0]["name"] == "u at t = 0"
    last = data["courses"][-1]
    np.testing.assert_allclose(last["points"][0]["y"], U[:, -1], atol=1e-3)
    np.testing.assert_allclose(last["curves"][0]["y"], U[:, -1], atol=1e-3)


def test_names_are_escaped() -> None:
    model = GMEQLField(functions=[]).fit({"<b>u": U}, x=X, t=T)
    page = build(model, source="</script>")
    assert "<b>u" not in page and page.count("</script>") == 2


def test_a_law_that_explains_little_is_called_so(monkeypatch) -> None:
    assert "not to be relied on" not in build(heat_model())
    monkeypatch.setattr(GMEQLField, "score", lambda self: 0.21)
    assert "explains only 21% of how the fields change" in build(heat_model())
