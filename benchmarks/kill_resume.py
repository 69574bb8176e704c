"""Kill a running search again and again, resume it each time, and hold what comes out against a run nobody touched.

usage: python benchmarks/kill_resume.py [--kills 100] [--kills-per-run 10] [--candidates 4000] [--interval 0.2]

Each run has a candidate budget and a checkpoint folder. It is killed (SIGKILL) at random moments and started again
until it ends by itself. Shown: every resume works, the checkpoint never lies more than one interval (and the event
under way) behind the last progress reported, and the final front is, formula by formula, that of the unbroken run with the
same seed. (Its losses may lie above those reported on the way: at its end a search drops terms that the rows do not
support.) The exit status is 0 only if all of that holds.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

ROWS = 120
SAVE_SECONDS = 1.0
"""Slack for writing a checkpoint and for the pipe between the processes, on a busy machine."""


def table() -> tuple[np.ndarray, np.ndarray]:
    """A law with noise, so that a search never ends before its budget."""
    rng = np.random.default_rng(7)
    X = rng.uniform(1, 3, (ROWS, 3))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] / X[:, 0] + 0.05 * rng.standard_normal(ROWS)


def child(folder: str, seed: int, candidates: int, interval: float) -> None:
    """The run that gets killed: reports every event on stdout, and the final front."""
    from gmeql import GMEQLRegressor

    def report(progress: Any) -> None:
        line = {"elapsed": progress.elapsed, "candidates": progress.candidates, "loss": progress.front[-1].loss}
        print(json.dumps(line), flush=True)

    checkpoint = folder or None
    model = GMEQLRegressor(
        max_candidates=candidates,
        max_time=None,
        random_state=seed,
        max_complexity=25,
        n_jobs=1,
        checkpoint=checkpoint,
        checkpoint_interval=interval,
        callbacks=report,
    )
    model.fit(*table())
    final = [[str(m.expression.exact()), m.loss] for m in model.front_]
    print(json.dumps({"front": final, "candidates": model.candidates_}), flush=True)


@dataclass
class Record:
    """What was seen of one run from its first start to its end."""

    seed: int
    kills: int = 0
    resumed: int = 0
    most_lost: float = 0.0
    allowed: float = 0.0
    same_front: bool = False
    problems: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return self.same_front and not self.problems and self.most_lost <= self.allowed


def start(folder: str, seed: int, candidates: int, interval: float) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--child", folder, str(seed), str(candidates), str(interval)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def unbroken(seed: int, candidates: int) -> list[Any]:
    process = start("", seed, candidates, 30.0)
    out, err = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"the unbroken run failed: {err[-2000:]}")
    return json.loads(out.splitlines()[-1])["front"]


def broken(seed: int, candidates: int, interval: float, kills: int, rng: np.random.Generator) -> Record:
    """One run with `kills` kills at random moments of its work."""
    from gmeql.model.files.checkpoint import load_checkpoint

    record = Record(seed)
    expected = unbroken(seed, candidates)
    with tempfile.TemporaryDirectory() as folder:
        while True:
            process = start(folder, seed, candidates, interval)
            timer: threading.Timer | None = None
            last, gap, front = None, 0.0, None
            assert process.stdout is not None
            while line := process.stdout.readline():
                message = json.loads(line)
                if "front" in message:
                    front = message["front"]
                    continue
                if last is None and record.kills < kills:
                    timer = threading.Timer(rng.uniform(0.0, 5 * interval), process.kill)
                    timer.start()
                gap = max(gap, message["elapsed"] - last["elapsed"] if last else 0.0)
                last = message
            if timer is not None:
                timer.cancel()
            process.stdout.close()
            error = process.stderr.read() if process.stderr else ""
            code = process.wait()
            if front is not None:
                record.same_front = front == expected
                return record
            if code != -signal.SIGKILL:
                record.problems.append(error[-2000:])
                return record
            assert last is not None  # the timer starts with the first event
            record.kills += 1
            found = load_checkpoint(folder)
            saved = 0.0 if found is None else float(found[0]["search"]["elapsed"])
            record.resumed += found is not None
            record.problems += [] if found is None else found[1]
            record.most_lost = max(record.most_lost, last["elapsed"] - saved)
            record.allowed = max(record.allowed, interval + gap + SAVE_SECONDS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--kills-per-run", type=int, default=10)
    parser.add_argument("--candidates", type=int, default=4000)
    parser.add_argument("--interval", type=float, default=0.2)
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        folder, seed, candidates, interval = options.child
        child(folder, int(seed), int(candidates), float(interval))
        return 0
    rng = np.random.default_rng(0)
    records: list[Record] = []
    while (done := sum(r.kills for r in records)) < options.kills:
        wanted = min(options.kills_per_run, options.kills - done)
        record = broken(len(records), options.candidates, options.interval, wanted, rng)
        records.append(record)
        print(json.dumps(asdict(record) | {"good": record.good}), flush=True)
        if record.kills == 0:
            break
    good = all(r.good for r in records) and sum(r.kills for r in records) >= options.kills
    kills, resumed, same = (sum(getattr(r, name) for r in records) for name in ("kills", "resumed", "same_front"))
    print(
        f"{kills} kills in {len(records)} runs, {resumed} found a checkpoint; {same} of {len(records)} runs ended on "
        f"the unbroken run's front; most lost {max(r.most_lost for r in records):.2f} s: {'good' if good else 'BAD'}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
