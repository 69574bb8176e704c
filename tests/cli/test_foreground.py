"""A fit in the foreground: signals are answered and what was found is kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest

from gmeql.cli import foreground
from gmeql.cli.foreground import run_interruptibly
from gmeql.estimator import GMEQLRegressor
from gmeql.model.files.storage import StorageError
from gmeql.runs.execute import RunOutcome, execute
from gmeql.runs.folder import Run
from gmeql.runs.settings import FitSettings
from gmeql.tables.read import read


def test_a_signal_saves_what_was_found(tmp_path):
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
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "gmeql resume" in err and "Traceback" not in err
    assert Run.open(run).description()["state"] == "stopped"
    assert (run / "model.json").is_file() and (run / "front.csv").is_file()


def test_a_full_disk_costs_the_files_and_not_the_formula(tmp_path, monkeypatch):
    def full(*_):
        raise StorageError("model.json: cannot be written (No space left on device); free some space")

    monkeypatch.setattr("gmeql.runs.execute.save_results", full)
    training = read(("a,y\n" + "".join(f"{i},{3 * i}\n" for i in range(1, 20))).encode(), name="line.csv").select("y")
    settings = FitSettings(target="y", max_time=None, max_candidates=400)
    run = Run.create(tmp_path / "run", training, settings)
    shown = []
    with pytest.raises(StorageError, match="No space left"):
        run_interruptibly(run, training, settings, quiet=True, show=shown.append)
    assert [str(outcome.model.expression_) for outcome in shown] == ["3*a"]


class TestOrderAfterCtrlC:
    """Model and front, then the formula on the screen, then the report, with a run that is held where it matters."""

    SETTINGS = FitSettings(target="y", max_time=None, max_candidates=400)

    @pytest.fixture
    def training(self):
        text = "a,y\n" + "".join(f"{i / 7},{(i * 7919 % 101) / 10 + i}\n" for i in range(30))
        return read(text.encode(), name="noisy.csv").select("y")

    def run(self, tmp_path, training, monkeypatch, held):
        """Run with `held` in place of `execute`; the outcome, the exit code, and what was shown with the files then."""
        run = Run.create(tmp_path / "run", training, self.SETTINGS)
        shown = []

        def show(outcome: RunOutcome) -> None:
            shown.append((outcome, {path.name for path in run.folder.iterdir()}))
            at_screen.set()

        at_screen = threading.Event()
        monkeypatch.setattr(foreground, "execute", lambda *args, **options: held(at_screen, *args, **options))
        monkeypatch.setattr(foreground, "_preload", lambda: None)
        outcome, code = run_interruptibly(run, training, self.SETTINGS, quiet=True, show=show)
        assert code == 130 and len(shown) == 1
        assert {"model.json", "front.csv"} <= shown[0][1] and "report.html" not in shown[0][1]
        return outcome, shown[0][0]

    def test_the_formula_is_shown_before_the_report_is_written(self, tmp_path, training, monkeypatch):
        def held(at_screen, *args, on_saved, **options):
            def saved(outcome):
                os.kill(os.getpid(), signal.SIGINT)
                on_saved(outcome)
                assert at_screen.wait(60)  # the report is written after this

            return execute(*args, on_saved=saved, **options)

        outcome, shown = self.run(tmp_path, training, monkeypatch, held)
        assert outcome.report == tmp_path / "run" / "report.html" and outcome.report.is_file()
        assert shown.model is not None and shown.report is None

    def test_a_second_ctrl_c_leaves_without_the_report(self, tmp_path, training, monkeypatch):
        release = threading.Event()

        def held(at_screen, *args, on_saved, **options):
            def saved(outcome):
                os.kill(os.getpid(), signal.SIGINT)
                on_saved(outcome)
                assert at_screen.wait(60)
                os.kill(os.getpid(), signal.SIGINT)
                release.wait(60)  # the report would never be done

            return execute(*args, on_saved=saved, **options)

        outcome, shown = self.run(tmp_path, training, monkeypatch, held)
        assert outcome == shown and outcome.report is None and not (tmp_path / "run" / "report.html").exists()
        worker = next(thread for thread in threading.enumerate() if thread.name == "gmeql-fit")
        release.set()
        worker.join(60)

    def test_a_search_that_does_not_end_in_time_is_saved_from_its_last_event(self, tmp_path, training, monkeypatch):
        monkeypatch.setattr(foreground, "DEADLINE_SECONDS", 0.0)
        reported = threading.Event()

        def held(at_screen, run, *, on_progress, stop, **options):
            def watch(progress):
                on_progress(progress)
                os.kill(os.getpid(), signal.SIGINT)
                assert at_screen.wait(60)  # a step that lasts until somebody else has saved
                assert not stop.claim_saving()

            outcome = execute(run, on_progress=watch, stop=stop, **options)
            assert outcome.model is None  # it came too late and left the files alone
            reported.set()
            return outcome

        outcome, shown = self.run(tmp_path, training, monkeypatch, held)
        assert reported.wait(60) and outcome.report is not None and outcome.report.is_file()
        stored = GMEQLRegressor.load(tmp_path / "run" / "model.json")
        assert list(stored.front_) == list(shown.model.front_) and replace(outcome, report=None) == shown
