"""The start page and the tables dropped on it."""

from __future__ import annotations

from html.parser import HTMLParser

from gmeql.knowledge.knowledge import UNIT_CHECKS
from gmeql.model.pareto.rules import RULES
from gmeql.search.losses.losses import LOSSES
from web_client import HEADERS, upload


def test_a_table_comes_back_judged(client):
    table = upload(client, "t;who;y\n0,5;ann;1\n1,5;bob;2\n", "a <b>.csv")
    assert [column["kind"] for column in table["columns"]] == ["number", "text", "number"]
    assert "decimal mark: comma" in table["notes"] and table["preview"][0] == ["0,5", "ann", "1"]
    again = client.get(f"/tables/{table['table']}", headers=HEADERS).json()
    assert again["columns"] == table["columns"]


def test_a_bad_table_is_one_line(client):
    response = client.post("/tables", params={"name": "bad.csv"}, content=b"a,y\n1,2\n3\n", headers=HEADERS)
    assert response.status_code == 422 and "bad.csv, row 3" in response.json()["error"]


class Options(HTMLParser):
    """Values of the options of each select."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, list[str]] = {}
        self._select = ""

    def handle_starttag(self, tag, attributes):
        if tag == "select":
            self._select = dict(attributes)["id"]
        elif tag == "option":
            self.found.setdefault(self._select, []).append(dict(attributes)["value"])


def test_the_page_offers_every_loss_and_rule(client):
    options = Options()
    options.feed(client.get("/", headers=HEADERS).text)
    none = {"groups": [""], "weights": [""], "order": ["1", "2"]}  # filled with columns; of a time series
    assert options.found == {"loss": list(LOSSES), "selection": list(RULES), "unit_check": list(UNIT_CHECKS)} | none


def test_files_of_the_page_come_with_their_kind(client):
    for name, kind in (("style.css", "text/css"), ("home.js", "text/javascript"), ("charts.js", "text/javascript")):
        answer = client.get(f"/static/{name}", headers=HEADERS)
        assert answer.status_code == 200 and answer.headers["content-type"].startswith(kind) and answer.text
    assert client.get("/static/app.py", headers=HEADERS).status_code == 404


def test_a_table_that_is_gone_is_404(client):
    assert client.get("/tables/0123456789abcdef", headers=HEADERS).status_code == 404
