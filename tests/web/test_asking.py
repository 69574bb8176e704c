"""What the page hands to commands: names that hold commas, budgets, nothing unknown."""

from __future__ import annotations

import pytest

from gmeql.runs.settings import ConfigError, split_names
from gmeql.web.asking import joined, names_of
from web_client import HEADERS, upload


@pytest.mark.parametrize("names", [["a"], ["a, b", "c"], ['say "x"', "d"], ["-t", "x=1"]])
def test_the_command_line_reads_the_names_it_is_given(names):
    assert list(split_names(joined(names))) == names


def test_names_are_a_list_of_text():
    for given in ("a", [1], None):
        with pytest.raises(ConfigError, match="list of names"):
            names_of(given)


def test_what_a_command_is_not_asked_for_is_refused_by_name(client):
    body = {"table": upload(client)["table"], "target": "x", "jobs": 64}
    response = client.post("/classes", json=body, headers=HEADERS)
    assert response.status_code == 422 and "unknown setting 'jobs'" in response.json()["error"]


def test_a_table_that_is_gone_is_said(client):
    body = {"table": "0" * 16, "target": "x"}
    assert client.post("/classes", json=body, headers=HEADERS).status_code == 404
