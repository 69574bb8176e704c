"""A fit in the foreground: signals are answered and what was found is kept."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from gmeql.runs.folder import Run


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_what_was_found(number, code, tmp_path):
    path = tmp_path / "noisy.csv"
    path.write_text("a,y\n" + "".join(f"{i / 7},{(i * 7919 % 101) / 10 + i}\n" for i in range(60)))
    run = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-m", "gmeql", "fit", str(path), "-t", "y", "--max-time", "300", "--out", str(run)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    log = run / "progress.jsonl"
    for _ in range(1200):
        if log.exists() and log.stat().st_size:
            break
        time.sleep(0.1)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "gmeql resume" in err and "Traceback" not in err
    assert Run.open(run).description()["state"] == "stopped"
    assert (run / "model.json").is_file() and (run / "front.csv").is_file()
