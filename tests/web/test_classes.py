"""Classes from the page: a column of words from table to report, and plain refusals."""

from __future__ import annotations

import numpy as np
import pytest
from gmeql import GMEQLClassifier
from web_client import HEADERS, ended, upload

RNG = np.random.default_rng(0)
RINGS = "a,b,c,where\n" + "\n".join(
    f"{a},{b},7," + ("in" if a * a + b * b < 1 else '"near, by"' if a * a + b * b < 3 else "out")
    for a, b in RNG.uniform(-2, 2, (90, 2)).tolist()
)


def test_classes_of_words_from_table_to_report(client):
    body = {
        "table": upload(client, RINGS)["table"],
        "target": "where",
        "columns": ["a", "b"],
        "max_time": 0.1,
        "seed": 0,
    }
    state = ended(client, "/classes", body)
    assert [text.split(" = ")[0] for text in state["equations"]] == [
        "logit of in", "logit of near, by", "logit of out",
    ]  # fmt: skip
    report = client.get(state["link"] + "/report", headers=HEADERS)
    assert "What is taken for what" in report.text and "frame-ancestors" in report.headers["content-security-policy"]
    for number in (1, 2, 3):
        page = client.get(f"{state['link']}/report-{number}.html", headers=HEADERS)
        assert page.status_code == 200 and "logit of where is" in page.text
    for name in ("report-4.html", "result.json", "..%2Frun.json"):
        assert client.get(f"{state['link']}/{name}", headers=HEADERS).status_code == 404
    assert client.get(state["link"] + "/files/model.json", headers=HEADERS).status_code == 200
    model = GMEQLClassifier.load(client.app.state.commands.folder / state["name"] / "model.json")
    assert model.classes_.tolist() == ["in", "near, by", "out"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"target": "c"}, "holds '7' alone; 2 to 50 classes can be told apart"),
        ({"target": "a"}, "holds 90 classes; 2 to 50 classes can be told apart"),
        ({"target": "none"}, "no such column"),
        ({"target": ""}, "choose the column of classes"),
        ({"target": "where", "columns": "a"}, "list of names"),
        ({"target": "where", "units": "a=m"}, "unknown setting 'units'"),
    ],
)
def test_what_cannot_run_is_refused_at_once(client, settings, words):
    body = {"table": upload(client, RINGS)["table"]} | settings
    response = client.post("/classes", json=body, headers=HEADERS)
    assert response.status_code == 422 and words in response.json()["error"]


def test_the_start_page_counts_the_classes_of_columns(client):
    response = upload(client, RINGS)
    assert [column["classes"] for column in response["columns"]] == [90, 90, 1, 3]
    assert response["most_classes"] == 50 and 'id="label"' in client.get("/", headers=HEADERS).text
