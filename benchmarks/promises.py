"""The promises that users can check from outside, each kept so often out of so many times.

usage: python benchmarks/promises.py same [--kills 30] [--candidates 3000] [--fresh]
       python benchmarks/promises.py forms [--formulas 300]
       python benchmarks/promises.py hardship [--fresh]
       python benchmarks/promises.py page [--runs 20] [--connections 50]

same      One seed and one `max_candidates` give one front, to the last digit: on one thread and two, on workers, after
          pickling and saving, after kills (SIGKILL at random times) and resumes of a run folder.
forms     Printed, SymPy, Python, C and JSON forms of random formulas compute what `predict` does, also outside the
          range of the data, at zeros, at negative and at huge values.
hardship  A full disk, a read-only folder, no HOME, few files, little memory: an exit code and a line, no traceback.
page      The page of `gmeql ui` under queued runs, idle connections, uploads past its limit and a killed server.

`--fresh` adds what needs kernels compiled anew, a minute or two each: the process that finds none on disk against the
next one, two processes at once, a full disk. Every check prints a line; the exit status is 0 only if all are good.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import pickle
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

GMEQL = [sys.executable, "-m", "gmeql"]
SECONDS = 300.0
"""How long a command or a wait may take before it counts as broken."""


class Report:
    """Checks so far: a line for each, and whether all were good."""

    def __init__(self) -> None:
        self.good = Counter[bool]()

    def add(self, name: str, good: bool, detail: str = "") -> None:
        self.good[good] += 1
        print(f"{'good' if good else 'BAD '}  {name}{': ' if detail else ''}{detail}", flush=True)

    def skip(self, name: str, why: str) -> None:
        print(f"----  {name}: {why}", flush=True)

    def end(self) -> int:
        print(f"{self.good[True]} of {self.good.total()} checks good")
        return 1 if self.good[False] else 0


def table() -> tuple[np.ndarray, np.ndarray]:
    """A law of Planck's form with noise, so that a search never ends before its budget."""
    rng = np.random.default_rng(7)
    X = rng.uniform(0.5, 4, (150, 2))
    return X, X[:, 0] ** 3 / np.expm1(X[:, 0] / X[:, 1]) + 0.01 * rng.standard_normal(len(X))


def write_table(path: Path) -> Path:
    X, y = table()
    lines = [",".join(map(repr, map(float, row))) for row in np.column_stack([X, y])]
    path.write_text("\n".join(["a,b,y", *lines, ""]), encoding="ascii")
    return path


# --- same -------------------------------------------------------------------------------------------------------------


def repickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own bytes


def front_of(model: Any) -> list[tuple[str, float]]:
    return [(member.expression.exact(), member.loss) for member in model.front_]


def same(report: Report, *, kills: int, candidates: int, fresh: bool) -> None:
    import joblib

    from gmeql import GMEQLRegressor
    from gmeql.model.ranges import RangeWarning

    X, y = table()

    def fit(n_jobs: int = 1) -> Any:
        return GMEQLRegressor(max_candidates=candidates, max_time=None, random_state=0, n_jobs=n_jobs)

    model = fit().fit(X, y)
    front = front_of(model)
    report.add("two threads", front_of(fit(2).fit(X, y)) == front, f"{len(front)} formulas")
    for backend, package in (("loky", "joblib"), ("dask", "distributed"), ("ray", "ray")):
        if find_spec(package) is None:
            report.skip(f"workers of {backend}", "not installed")
        elif backend == "loky":
            with joblib.parallel_config("loky", n_jobs=2):
                report.add("workers of loky", front_of(fit(2).fit(X, y)) == front)
        else:
            with cluster(backend), joblib.parallel_config(backend):
                report.add(f"workers of {backend}", front_of(fit(2).fit(X, y)) == front)
    report.add("fitted after pickling", front_of(repickled(fit()).fit(X, y)) == front)
    far = np.vstack([X, 50 * X, -X])
    with np.errstate(all="ignore"), warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore", RangeWarning)  # rows far outside are asked for on purpose
        expected = model.predict(far).tobytes()
        report.add("pickled after fitting", repickled(model).predict(far).tobytes() == expected)
        model.save(Path(folder) / "model.json")
        loaded = GMEQLRegressor.load(Path(folder) / "model.json")
        report.add("saved and loaded", loaded.predict(far).tobytes() == expected and front_of(loaded) == front)
    killed(report, kills, 10 * candidates)
    if fresh:
        first_and_second_process(report)


@contextmanager
def cluster(backend: str) -> Iterator[None]:
    """A small cluster of Dask or Ray on this machine, known to joblib."""
    if backend == "dask":
        from distributed import Client  # type: ignore[import-not-found]

        with Client(n_workers=2, threads_per_worker=1, dashboard_address=None):
            yield
    else:
        import ray  # type: ignore[import-not-found]
        from ray.util.joblib import register_ray  # type: ignore[import-not-found]

        ray.init(num_cpus=2, include_dashboard=False)
        register_ray()
        yield
        ray.shutdown()


def fit_command(data: Path, folder: Path, candidates: int) -> list[str]:
    budget = ["--max-candidates", str(candidates), "--seed", "0"]
    return [*GMEQL, "fit", str(data), "--target", "y", *budget, "--quiet", "--out", str(folder)]


def killed(report: Report, kills: int, candidates: int) -> None:
    """`gmeql fit` killed at random times and resumed, until it was killed often enough, or ends before that."""
    moments = random.Random(0)
    done = rounds = same_front = 0
    with tempfile.TemporaryDirectory() as name:
        data = write_table(Path(name) / "table.csv")
        start = time.monotonic()
        subprocess.run(fit_command(data, Path(name) / "whole", candidates), check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - start
        expected = (Path(name) / "whole" / "front.csv").read_bytes()
        while done < kills:
            folder = Path(name) / f"killed-{rounds}"
            ended, before = False, done
            while not ended:
                known = (folder / "run.json").exists()
                command = [*GMEQL, "resume", str(folder), "--quiet"] if known else fit_command(data, folder, candidates)
                process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                try:
                    wait = moments.uniform(0, seconds) if done < kills else SECONDS
                    _, error = process.communicate(timeout=wait)
                    ended = True
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.communicate()
                    done += 1
            rounds += 1
            good = process.returncode == 0 and (folder / "front.csv").read_bytes() == expected
            same_front += good
            if not good:
                report.skip(f"run {rounds}, {done - before} kills", f"ended with {process.returncode}: {error[-500:]}")
                break
    detail = f"{done} kills in {rounds} runs of {candidates} candidates, {same_front} ended on the unbroken run's front"
    report.add("killed and resumed", done >= kills and same_front == rounds, detail)


def first_and_second_process(report: Report) -> None:
    """Without kernels on disk, and with those that the first process left there."""
    with tempfile.TemporaryDirectory() as name:
        data = write_table(Path(name) / "table.csv")
        fronts = []
        for number in range(2):
            folder = Path(name) / str(number)
            environment = os.environ | {"NUMBA_CACHE_DIR": f"{name}/kernels"}
            subprocess.run(fit_command(data, folder, 6000), env=environment, check=True, stdout=subprocess.DEVNULL)
            fronts.append((folder / "front.csv").read_bytes())
    report.add("first process and second", fronts[0] == fronts[1])


# --- forms ------------------------------------------------------------------------------------------------------------


MANY_DIGITS = 400
"""More than lie between the smallest and the largest value that formulas are asked for here."""


def is_equal(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    return np.isclose(found, expected, rtol=1e-11, atol=0)


def forms(report: Report, *, formulas: int) -> None:
    """Each form against the expression, on rows where rounding does not decide (`comparable`)."""
    import mpmath  # type: ignore[import-untyped]
    import sympy
    from hypothesis import HealthCheck, Phase, given, seed, settings

    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from exported_formulas import COMPILER, compile_c, run_python
    from random_trees import NAMES, all_parts_finite, comparable, expressions, rows

    from gmeql import Expression
    from gmeql.formula.parsing import parse_tree

    corners = np.array([0.0, 1.0, -1.0, -2.5, 1e-9, 1e9, -1e9, 1e120, -1e120])
    grid = np.array(np.meshgrid(corners, corners, corners)).reshape(3, -1).T
    X = np.vstack([rows(), 100 * rows(1), grid[:: len(grid) // 150]])
    compared, wrong, kept = Counter[str](), Counter[str](), 0
    wrong_formulas: dict[str, str] = {}

    def sympy_values(expression: Any, keep: np.ndarray) -> np.ndarray | None:
        """By NumPy; in many digits where SymPy's order of terms and factors rounds or overflows otherwise."""
        form = expression.sympy()
        if form.has(sympy.nan, sympy.zoo, sympy.oo):  # a branch that is never taken, or no value anywhere
            return None
        symbols = sympy.symbols(" ".join(NAMES))
        values = np.array(np.broadcast_to(sympy.lambdify(symbols, form, "numpy")(*X.T), (len(X),)), complex)
        with mpmath.workdps(MANY_DIGITS):
            for row in np.flatnonzero(keep & ~is_equal(values.real, expression(X))):
                values[row] = complex(sympy.lambdify(symbols, form, "mpmath")(*map(mpmath.mpf, X[row])))
        return values

    def check(form: str, expression: Any, values: Any, keep: np.ndarray) -> None:
        expected = expression(X)[keep]
        found = np.broadcast_to(np.asarray(values, complex).real, (len(X),))[keep]
        compared[form] += len(expected)
        bad = int((~is_equal(found, expected)).sum())
        wrong[form] += bad
        if bad:
            wrong_formulas.setdefault(form, expression.exact())

    with tempfile.TemporaryDirectory() as name, np.errstate(all="ignore"):
        folder = Path(name)

        @seed(0)
        @settings(max_examples=formulas, database=None, deadline=None, phases=[Phase.generate],
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(expressions())
        def each(expression: Any) -> None:
            nonlocal kept
            kept += 1
            keep = comparable(expression, X)
            read_back = Expression.from_dict(json.loads(expression.export("json")))
            check("JSON", expression, read_back(X), keep)
            check("Python", expression, run_python(expression.export("python"), folder)(*X.T), keep)
            if COMPILER is not None:
                check("C", expression, compile_c(expression.export("c"), folder)(X), keep)
            if not expression.is_protected:  # protected forms have words that only people read
                check("text", expression, Expression(parse_tree(expression.exact(), NAMES), NAMES)(X), keep)
            keep &= all_parts_finite(expression, X)
            values = sympy_values(expression, keep)
            if values is not None:
                check("SymPy", expression, values, keep)

        each()
        if COMPILER is None:
            report.skip("C", "no compiler")
    for form in compared:
        detail = f"{wrong[form]} of {compared[form]} values differ, {kept} formulas on {len(X)} rows"
        report.add(form, not wrong[form], detail + (f"; first: {wrong_formulas[form]}" if wrong[form] else ""))


# --- hardship ---------------------------------------------------------------------------------------------------------


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
            answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
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


# --- page -------------------------------------------------------------------------------------------------------------


class Page:
    """A server of the page in a process of its own."""

    def __init__(self, folder: Path) -> None:
        command = [*GMEQL, "ui", "--runs", str(folder), "--no-open"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        address = urlsplit(self.process.stdout.readline())
        self.port = int(address.port or 0)
        self.headers = {"authorization": f"Bearer {parse_qs(address.query)['token'][0]}"}

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request(method, path, body, self.headers, encode_chunked=isinstance(body, Iterator))
            answer = connection.getresponse()
            text = answer.read()
            is_json = "json" in answer.headers.get("content-type", "")
            return answer.status, json.loads(text) if is_json else text
        finally:
            connection.close()

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        self.process.communicate()
        return self.process.returncode


def states(page: Page, names: list[str]) -> Counter[str]:
    return Counter(page.ask("GET", f"/runs/{name}/state")[1]["state"] for name in names)


def page(report: Report, *, runs: int, connections: int) -> None:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name) / "runs"
        server = Page(folder)
        stack.callback(lambda: server.process.poll() is None and server.end(signal.SIGKILL))
        data = write_table(Path(name) / "table.csv").read_bytes()
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", server.port))) for _ in range(connections)]
        for half, connection in enumerate(idle):
            if half % 2:
                connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")  # and never the end of the request
        start = time.monotonic()
        code, answer = server.ask("POST", "/tables?name=table.csv", data)
        report.add(f"{connections} idle connections", code == 200, f"answered after {time.monotonic() - start:.1f} s")
        settings = {"table": answer["table"], "target": "y", "max_candidates": 300}
        made = [server.ask("POST", "/runs", json.dumps(settings)) for _ in range(runs)]
        names = [answer["run"] for code, answer in made if code == 201]
        report.add(
            f"{runs} queued runs", len(set(names)) == runs, f"{len(set(names))} made, {dict(states(server, names))}"
        )
        code = chunked_upload(server)
        report.add("a chunked upload of 60 MB", code in (413, None), f"answer {code or 'connection closed'}")
        report.add("the page after it", server.ask("GET", "/")[0] == 200)
        before = states(server, names)
        server.end(signal.SIGKILL)
        server = Page(folder)
        after = states(server, names)
        report.add("killed and started again", after.total() == runs, f"before {dict(before)}, after {dict(after)}")
        found, last = after, time.monotonic()
        while found["done"] < runs and time.monotonic() < last + SECONDS:
            time.sleep(1)
            now = states(server, names)
            if now["done"] > found["done"]:  # the wait is for one run, not for all
                last = time.monotonic()
            found = now
        report.add("all runs end", found["done"] == runs, f"{dict(found)}")
        report.add("ended by SIGTERM", server.end(signal.SIGTERM) == 128 + signal.SIGTERM)


def chunked_upload(server: Page) -> int | None:
    """The answer to a body without a length that passes the limit; None where the server hung up on it."""
    try:
        return server.ask("POST", "/tables?name=large.csv", iter([b"1,2,3\n" * 2**17] * 80))[0]
    except (BrokenPipeError, ConnectionResetError):
        return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("same")
    one.add_argument("--kills", type=int, default=30)
    one.add_argument("--candidates", type=int, default=3000)
    one.add_argument("--fresh", action="store_true")
    two = commands.add_parser("forms")
    two.add_argument("--formulas", type=int, default=300)
    three = commands.add_parser("hardship")
    three.add_argument("--fresh", action="store_true")
    four = commands.add_parser("page")
    four.add_argument("--runs", type=int, default=20)
    four.add_argument("--connections", type=int, default=50)
    options = vars(parser.parse_args())
    report = Report()
    {"same": same, "forms": forms, "hardship": hardship, "page": page}[options.pop("command")](report, **options)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
