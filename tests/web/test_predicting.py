"""Values of a run's formula for a new table, asked from the page: by one formula or averaged, and what is refused."""

from __future__ import annotations

import csv
import io

import pytest

from gmeql import GMEQLRegressor
from web_client import HEADERS, start, upload, wait

NEW = "a,b,other\n" + "".join(f"{i / 2},{i % 5},x\n" for i in range(1, 21))


def ask(client, run: str, text: str = NEW, **settings: object):
    table = upload(client, text)["table"]
    return client.post(f"/runs/{run}/predict", json={"table": table, **settings}, headers=HEADERS)


def test_by_the_formula_and_by_an_average_with_low_and_high_or_it_is_explained_why_not(client, tmp_path):
    run = start(client)
    wait(client, run, "done")
    plain = ask(client, run).json()
    assert plain["columns"] == ["a", "b", "prediction"] and plain["n_rows"] == 20 and len(plain["rows"]) == 6
    averaged = ask(client, run, average=True).json()
    assert averaged["columns"] == ["a", "b", "prediction", "prediction low", "prediction high"]
    saved = client.get(f"/runs/{run}/files/predictions.csv", headers=HEADERS)
    rows = list(csv.DictReader(io.StringIO(saved.text)))
    assert len(rows) == 20
    model = GMEQLRegressor.load(tmp_path / "runs" / run / "model.json")
    mean, low, high = model.average([[float(row["a"]), float(row["b"])] for row in rows])
    for told, wanted in (("prediction", mean), ("prediction low", low), ("prediction high", high)):
        assert [float(row[told]) for row in rows] == pytest.approx(wanted.tolist())
    lacking = ask(client, run, "a\n1\n2\n3\n")
    assert lacking.status_code == 422 and "'b'" in lacking.json()["error"] and "/tmp" not in lacking.json()["error"]
    assert "average" in ask(client, run, average="yes").json()["error"]
    gone = client.post(f"/runs/{run}/predict", json={"table": "0" * 16}, headers=HEADERS)
    assert gone.status_code == 404 and "drop it again" in gone.json()["error"]
    assert ask(client, "nobody").status_code == 404
