"""A full disk, a read-only folder, no HOME, few files, little memory: an exit code and a line, no traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from common import SECONDS, Report, fit_command, write_table

from gmeql.model.fit.kernels import keep_kernels


@contextmanager
def small_disk(options: str = "size=1m") -> Iterator[Path | None]:
    """A disk of one megabyte; None where this user may not mount."""
    with tempfile.TemporaryDirectory() as name:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", name], capture_output=True)
        try:
            yield Path(name) if mounted.returncode == 0 else None
        finally:
            if mounted.returncode == 0:
                subprocess.run(["umount", "--lazy", name], check=True)


def fill(disk: Path, *, leave: int = 0) -> None:
    """Write until the disk is full, and give `leave` bytes back."""
    path = disk / "filler"
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            pass
        file.truncate(max(file.tell() - leave, 0))


def hardship(report: Report, *, fresh: bool) -> None:
    keep_kernels()  # or the first search compiles them, on a crowded machine for minutes
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        data = write_table(Path(name) / "table.csv")
        numbers = iter(range(100))

        def attempt(
            label: str, allowed: tuple[int, ...], *, out: Path | None = None, limit: str = "",
            **changes: str | None,
        ) -> None:  # fmt: skip
            folder = out or Path(name) / f"run-{next(numbers)}"
            environment = {k: v for k, v in (os.environ | changes).items() if v is not None}
            command = ["bash", "-c", f'{limit} exec "$@"', "bash", *fit_command(data, folder, 500)]
            try:
                answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
            except subprocess.TimeoutExpired:
                report.add(label, False, f"no end within {SECONDS:g} s")
                return
            lines = answer.stderr.strip().splitlines()
            good = answer.returncode in allowed and "Traceback" not in answer.stderr
            good &= answer.returncode == 0 or len(lines) >= 1
            if (folder / "progress.jsonl").exists():  # the search ran: its formula is not lost with the disk
                good &= "y = " in answer.stdout
            report.add(label, good, f"exit {answer.returncode}; {lines[-1][:300] if lines else 'no word'}")

        disk = stack.enter_context(small_disk())
        if disk is None:
            report.skip("full disk, read-only folder", "not allowed to mount here")
        else:
            fill(disk)
            attempt("full disk", (4,), out=disk / "run")
            for leave in (12_288, 65_536, 262_144):
                shutil.rmtree(disk / "run", ignore_errors=True)
                fill(disk, leave=leave)
                attempt(f"{leave} bytes of disk", (0, 4), out=disk / "run")
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
            attempt("read-only folder", (4,), out=disk / "other")
        attempt("no HOME", (0,), HOME=None, XDG_CACHE_HOME=None)
        attempt("64 open files", (0,), limit="ulimit -n 64;")
        for megabytes in (500, 1000, 2000, 4000):
            attempt(f"{megabytes} MB of memory", (0, 2, 4), limit=f"ulimit -v {megabytes * 1024};")
        if fresh:
            if disk is not None:
                attempt("kernels on a read-only disk", (0,), NUMBA_CACHE_DIR=str(disk))
            two_at_once(report, data)


def two_at_once(report: Report, data: Path) -> None:
    """Two processes that compile the same kernels at the same time."""
    with tempfile.TemporaryDirectory() as name:
        environment = os.environ | {"NUMBA_CACHE_DIR": f"{name}/kernels"}
        folders = [Path(name) / str(number) for number in range(2)]
        running = [
            subprocess.Popen(fit_command(data, f, 500), env=environment, stdout=subprocess.DEVNULL) for f in folders
        ]
        codes = [process.wait() for process in running]
        fronts = [(f / "front.csv").read_bytes() if (f / "front.csv").exists() else b"" for f in folders]
    report.add("two processes compiling", codes == [0, 0] and fronts[0] == fronts[1] != b"", f"exits {codes}")
