"""The searches of an estimator: progress, interrupts, warm starts, checkpoints, every method."""

from __future__ import annotations

import errno
import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

from gmeql.model.files import storage
from gmeql.model.files.checkpoint import CheckpointWarning, checkpoint_files
from gmeql.model.files.storage import StorageError
from gmeql.model.fit.fitting import InterruptedWarning
from quick_models import quick


class TestProgress:
    def test_callbacks_see_every_event_and_stop_the_search(self, noisy) -> None:
        seen = []

        def stop_at_the_third(progress) -> bool:
            seen.append(progress)
            return len(seen) == 3

        others = []
        fitted = quick(max_candidates=10**9, callbacks=[stop_at_the_third, others.append]).fit(*noisy)
        assert len(seen) == len(others) == 3
        assert fitted.stop_reason_ == "stopped by a callback"
        assert fitted.candidates_ == seen[-1].candidates
        assert len(fitted.history_["loss"]) == 3

    def test_history_never_rises(self, noisy) -> None:
        history = quick().fit(*noisy).history_
        assert (np.diff(history["loss"]) <= 0).all()
        assert (np.diff(history["candidates"]) >= 0).all()

    @pytest.mark.parametrize("verbose", [1, 2])
    def test_progress_goes_to_stderr(self, noisy, capsys, verbose: int) -> None:
        quick(verbose=verbose, max_candidates=300).fit(*noisy)
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "candidates" in captured.err and "loss" in captured.err

    def test_ctrl_c_keeps_what_was_found(self, noisy) -> None:
        def press(progress) -> None:  # at once, when the islands hold formulas and the front only the mean
            os.kill(os.getpid(), signal.SIGINT)

        with pytest.warns(InterruptedWarning, match="keeping"):
            fitted = quick(max_candidates=10**9, callbacks=press).fit(*noisy)
        assert fitted.stop_reason_ == "interrupted"
        assert len(fitted.front_) > 1
        assert np.isfinite(fitted.predict(noisy[0])).all()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_an_interrupt_from_inside_keeps_it_too(self, noisy) -> None:
        def press(progress) -> None:
            raise KeyboardInterrupt

        with pytest.warns(InterruptedWarning):
            fitted = quick(max_candidates=10**9, callbacks=press).fit(*noisy)
        assert len(fitted.front_) >= 1

    def test_fit_works_in_a_thread(self, noisy) -> None:
        answers = []
        thread = threading.Thread(target=lambda: answers.append(quick().fit(*noisy)))
        thread.start()
        thread.join()
        assert str(answers[0].front_) == str(quick().fit(*noisy).front_)


class TestWarmStart:
    def test_it_goes_on_where_it_ended(self, noisy) -> None:
        fitted = quick(warm_start=True).fit(*noisy)
        first = fitted.front_[-1].loss
        spent = fitted.candidates_
        fitted.fit(*noisy)
        assert fitted.candidates_ > spent
        assert fitted.front_[-1].loss <= first

    def test_other_data_start_afresh(self, noisy, table) -> None:
        fitted = quick(warm_start=True).fit(*noisy)
        fitted.fit(*table)
        assert str(fitted.front_) == str(quick().fit(*table).front_)


class TestCheckpoints:
    def test_a_resumed_run_ends_where_an_unbroken_one_does(self, noisy, tmp_path: Path) -> None:
        whole = quick(max_candidates=1500).fit(*noisy)
        events = []

        def stop_early(progress) -> bool:
            events.append(progress)
            return progress.candidates >= 700

        quick(max_candidates=1500, checkpoint=tmp_path, callbacks=stop_early).fit(*noisy)
        resumed = quick(max_candidates=1500, checkpoint=tmp_path).fit(*noisy)
        assert str(resumed.front_) == str(whole.front_)
        assert resumed.candidates_ == whole.candidates_
        assert len(resumed.history_["loss"]) >= len(events)

    def test_a_finished_run_is_not_searched_again(self, noisy, tmp_path: Path) -> None:
        first = quick(checkpoint=tmp_path).fit(*noisy)
        again = quick(checkpoint=tmp_path).fit(*noisy)
        assert str(again.front_) == str(first.front_)
        assert again.candidates_ == first.candidates_

    def test_a_larger_budget_goes_on(self, noisy, tmp_path: Path) -> None:
        first = quick(checkpoint=tmp_path).fit(*noisy)
        more = quick(max_candidates=1500, checkpoint=tmp_path).fit(*noisy)
        assert more.candidates_ >= 1500 > first.candidates_
        assert more.front_[-1].loss <= first.front_[-1].loss

    def test_several_targets_have_folders_of_their_own(self, noisy, tmp_path: Path) -> None:
        X, y = noisy
        quick(checkpoint=tmp_path).fit(X, np.column_stack([y, -y]))
        assert sorted(os.listdir(tmp_path)) == ["target-0", "target-1"]

    def test_other_data_are_refused(self, noisy, tmp_path: Path) -> None:
        X, y = noisy
        quick(checkpoint=tmp_path).fit(X, y)
        with pytest.raises(StorageError, match="another data set"):
            quick(checkpoint=tmp_path).fit(X, y + 1)

    def test_other_settings_are_refused(self, noisy, tmp_path: Path) -> None:
        quick(checkpoint=tmp_path).fit(*noisy)
        with pytest.raises(StorageError, match="functions"):
            quick(checkpoint=tmp_path, functions=["+", "*", "sin"]).fit(*noisy)

    def test_a_damaged_generation_is_passed_over_aloud(self, noisy, tmp_path: Path) -> None:
        first = quick(max_candidates=1000, checkpoint=tmp_path, checkpoint_interval=1e-9).fit(*noisy)
        newest = checkpoint_files(tmp_path)[0]
        newest.write_bytes(newest.read_bytes()[:-7])
        with pytest.warns(CheckpointWarning, match="generation before"):
            again = quick(max_candidates=1000, checkpoint=tmp_path).fit(*noisy)
        assert str(again.front_) == str(first.front_)

    def test_a_full_disk_costs_the_checkpoint_not_the_result(self, noisy, tmp_path: Path, monkeypatch) -> None:
        def full(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(storage.os, "fsync", full)
        with pytest.warns(CheckpointWarning, match="No space left"):
            fitted = quick(checkpoint=tmp_path).fit(*noisy)
        assert str(fitted.front_) == str(quick().fit(*noisy).front_)
        assert os.listdir(tmp_path) == []


def by_paper(**changes):
    return quick(**{"max_complexity": None, "functions": None, **changes})


@pytest.mark.usefixtures("compiled_quickly")
class TestPaperMethods:
    @pytest.mark.slow  # test_old_files.py: a checkpoint of "paper" goes on, and predicts what it prints
    @pytest.mark.parametrize("method", ["released", "paper"])
    def test_they_fit_and_print_what_they_predict(self, table, method: str) -> None:
        X, _ = table
        y = (X[:, 0] - 2) ** 2
        fitted = by_paper(method=method, architecture=[["id", "square"]], max_candidates=20_000).fit(X - 2, y)
        np.testing.assert_array_equal(fitted.predict(X), fitted.expression_(X))
        assert fitted.front_[-1].loss < np.std(y)
        assert fitted.candidates_ == 20_000

    @pytest.mark.slow
    def test_a_resumed_run_ends_where_an_unbroken_one_does(self, table, tmp_path: Path) -> None:
        small = {"method": "paper", "architecture": [["id", "square"]], "max_candidates": 30_000}
        whole = by_paper(**small).fit(*table)
        by_paper(**small, checkpoint=tmp_path, callbacks=lambda p: p.candidates >= 10_000).fit(*table)
        resumed = by_paper(**small, checkpoint=tmp_path).fit(*table)
        assert resumed.candidates_ == whole.candidates_
        assert str(resumed.front_[-1]) == str(whole.front_[-1])

    def test_weights_and_functions_are_refused_plainly(self, table) -> None:
        X, y = table
        with pytest.raises(ValueError, match="sample_weight"):
            by_paper(method="paper").fit(X, y, sample_weight=X[:, 0])
        with pytest.raises(ValueError, match="architecture"):
            by_paper(method="paper", functions=["+"]).fit(X, y)
        with pytest.raises(ValueError, match="method='paper' has a loss of its own"):
            by_paper(method="paper", loss="huber").fit(X, y)
        with pytest.raises(ValueError, match="method='paper' knows no such bound"):
            by_paper(method="paper", max_complexity=9).fit(X, y)
