"""`gmeql doctor` and `gmeql ui`."""

from __future__ import annotations

import json
import sys

from command_line import run_gmeql
from gmeql.cli import tools


def test_doctor(capsys):
    run_gmeql("doctor", "--json")
    record = json.loads(capsys.readouterr().out)
    assert record["cores"] >= 1 and record["versions"]["gmeql"] and record["devices"]


def test_the_doctor_says_the_same_to_people(capsys):
    run_gmeql("doctor")
    out = capsys.readouterr().out
    for name in ("gmeql", "numpy", "cores", "devices", "accelerator", "kernels", *tools.OPTIONAL_PACKAGES):
        assert name in out


def test_a_device_that_does_not_start_is_said_and_no_failure(monkeypatch):
    import jax

    def broken():
        raise RuntimeError("no\ndriver")

    monkeypatch.setattr(jax, "devices", broken)
    assert tools.doctor_record()["devices"] == ["JAX does not start: no driver"]


def test_the_page_without_its_packages_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    run_gmeql("ui", "--no-open", expect=2)
    assert "pip install 'gmeql[web]'" in capsys.readouterr().err


def test_the_page_is_served_as_asked(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("gmeql.web.serve", lambda folder, **options: asked.append((folder, options)))
    run_gmeql("ui", "--runs", str(tmp_path), "--port", "81", "--no-open")
    assert asked == [(tmp_path, {"port": 81, "open_browser": False})]
    run_gmeql("ui", "--port", "99999", expect=2)
