"""What routes share: bodies, runs and tables that are not there, and answers as plain data."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from starlette.requests import Request

from gmeql.formula.operators import OPERATORS
from gmeql.tables.read import read
from gmeql.web.answers import MAX_LISTED_COLUMNS, function_choices, refuse, table_record
from web_client import HEADERS


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"3"])
def test_a_body_that_is_no_object_is_400(client, body):
    assert client.post("/runs", content=body, headers=HEADERS).status_code == 400


@pytest.mark.parametrize("name", ["nothing", "..%2f..", "%00"])
def test_a_run_that_is_not_there_is_404(client, name):
    response = client.get(f"/runs/{name}", headers=HEADERS)
    assert response.status_code == 404 and "error" in response.json()


def test_a_table_that_is_no_longer_there_is_404(client):
    response = client.post("/runs", json={"table": "gone", "target": "y"}, headers=HEADERS)
    assert response.status_code == 404 and response.json()["error"] == "the table is no longer there; drop it again"


def test_what_users_can_mend_is_one_line():
    answer = asyncio.run(refuse(Request({"type": "http"}), ValueError("row 3:\n  'ten' is\tno number; --sheet")))
    assert answer.status_code == 422
    assert json.loads(bytes(answer.body)) == {"error": "row 3: 'ten' is no number; gmeql fit --sheet"}


def test_choices_of_functions_have_a_sign_each():
    choices = dict(function_choices())
    assert choices["mul"] == "×" and choices["sin"] == "sin"
    assert set(choices) <= set(OPERATORS)


def test_a_wide_table_is_listed_in_part(tmp_path: Path):
    width = MAX_LISTED_COLUMNS + 3
    rows = [",".join(f"c{i}" for i in range(width)), *(",".join(str(i * row) for i in range(width)) for row in (1, 2))]
    (tmp_path / "wide.csv").write_text("\n".join(rows))
    record = table_record("key", read(tmp_path / "wide.csv"))
    assert record["table"] == "key" and record["rows"] == 2
    assert len(record["columns"]) == MAX_LISTED_COLUMNS == len(record["preview"][0])
    assert record["columns"][1]["name"] == "c1"
