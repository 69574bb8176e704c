"""`gmeql doctor` and `gmeql ui`."""

from __future__ import annotations

import json

from command_line import run_gmeql


def test_doctor(capsys):
    run_gmeql("doctor", "--json")
    record = json.loads(capsys.readouterr().out)
    assert record["cores"] >= 1 and record["versions"]["gmeql"] and record["devices"]
