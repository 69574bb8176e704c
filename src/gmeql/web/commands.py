"""Commands of gmeql beside the page: one at a time, each a process of its own that writes into its folder.

The page says what the command line would: `dynamics`, `field`, `solve` and `classify` end at an interrupt with what they
found, and write the report themselves. A process of its own keeps the page quick while SymPy works, and outlives a
killed server.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gmeql.model.fit.kernels import same_packages
from gmeql.runs.equations import (
    LOG,
    REPORT,
    RESULT,
    last_line,
    read_record,
    read_result,
    write_record,
)
from gmeql.web.jobs import CLOSE_SECONDS, SAFE_NAME

LEFT = {
    "motion": "{name}{primes} = {right}",
    "field": "{name}_t = {right}",
    "solution": "{name} = {right}",
    "classes": "logit of {name} = {right}",
}
"""Kinds of commands, and how each writes an equation on one line."""
MOST_WAITING = 50


@dataclass
class Command:
    """A command that waits or runs."""

    name: str
    arguments: tuple[str, ...]
    record: dict[str, Any]
    stopping: bool = False
    begun: float = field(default_factory=time.monotonic)
    process: subprocess.Popen[bytes] | None = None
    thread: threading.Thread | None = None


class Commands:
    """All commands whose folders lie under one folder; a lock lets one run at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._turn, self._lock = threading.Lock(), threading.Lock()
        self._commands: dict[str, Command] = {}

    # ------------------------------------------------------------------ asking

    def state(self, name: str) -> dict[str, Any] | None:
        """All that the page shows of a command; None where there is none of that name.

        One that an earlier server left unfinished has ended, with or without a report.
        """
        folder = self.folder / name
        with self._lock:  # one that ends between the two would seem to have been left by an earlier server
            record = read_record(folder) if SAFE_NAME.fullmatch(name) else None
            command = self._commands.get(name)
        if record is None:
            return None
        result, report = read_result(folder), (folder / REPORT).is_file()
        if command is None and record["state"] in ("queued", "running"):
            state = "failed" if not report else "stopped" if result.get("reason") == "interrupted" else "done"
            reason = "" if report else "the server ended before it was done; start it again"
            record |= {"state": state, "reason": reason}
        running = command is not None and command.process is not None
        return record | {
            "name": name,
            "link": f"/equations/{name}",
            "stopping": command is not None and command.stopping,
            "elapsed": time.monotonic() - command.begun if command is not None and running else 0.0,
            "said": last_line(folder) if running else "",
            "equations": equations_of(record, result),
            "report": report and command is None,
            "model": (folder / "model.json").is_file() and command is None,
        }

    def listed(self) -> list[dict[str, Any]]:
        """Every command, as the list of runs shows it."""
        found = []
        for path in self.folder.iterdir():
            state = self.state(path.name)
            if state is not None:
                shown = {key: state[key] for key in ("name", "link", "state", "reason", "source", "created", "title")}
                formula = "; ".join(state["equations"])
                found.append(shown | {"position": None, "loss": None, "formula": formula})
        return found

    def wait(self) -> None:
        """Until every command that was started is done."""
        for command in list(self._commands.values()):
            if command.thread is not None:
                command.thread.join()

    # ------------------------------------------------------------------ doing

    def start(
        self, folder: Path, arguments: Sequence[str], *, kind: str, title: str, source: str, max_time: float
    ) -> None:
        """Run `gmeql ARGUMENTS` as soon as it is its turn; it writes its report into `folder`."""
        record = {
            "kind": kind,
            "state": "queued",
            "reason": "",
            "title": title,
            "source": source,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "max_time": float(max_time),
            "primes": "''" if "--order=2" in arguments else "'",
        }
        with self._lock:
            if len(self._commands) >= MOST_WAITING:
                raise ValueError(f"{MOST_WAITING} runs are waiting; stop some first")
            write_record(folder, record)
            command = Command(folder.name, tuple(arguments), record)
            command.thread = threading.Thread(target=self._run, args=(command,), daemon=True)
            self._commands[folder.name] = command
        command.thread.start()

    def stop(self, name: str) -> None:
        """End a command with what it found; one that waits does not begin."""
        with self._lock:
            command = self._commands.get(name)
            if command is None or command.stopping:
                return
            command.stopping = True
            if command.process is not None:
                command.process.send_signal(signal.SIGINT)
            else:
                del self._commands[name]
                self._end(command, "stopped", "stopped before it began")

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Stop all of them; one that takes longer than `seconds` to save itself goes on alone."""
        commands = list(self._commands.values())
        for command in commands:
            self.stop(command.name)
        end = time.monotonic() + seconds
        for command in commands:
            if command.thread is not None:
                command.thread.join(max(0.0, end - time.monotonic()))

    def _end(self, command: Command, state: str, reason: str) -> None:
        write_record(self.folder / command.name, command.record | {"state": state, "reason": reason})

    def _run(self, command: Command) -> None:
        try:
            self._execute(command)
        except OSError as error:  # its folder is gone, or the disk is full: the next one's turn comes all the same
            with self._lock:
                self._commands.pop(command.name, None)
                if (self.folder / command.name).is_dir():
                    with suppress(OSError):
                        self._end(command, "failed", f"its folder cannot be written ({error.strerror or error})")

    def _execute(self, command: Command) -> None:
        folder = self.folder / command.name
        with self._turn, open(folder / RESULT, "wb") as result, open(folder / LOG, "wb") as log:
            with self._lock:
                if command.stopping:
                    return
                write_record(folder, command.record | {"state": "running"})
                command.begun = time.monotonic()
                command.process = subprocess.Popen(
                    [sys.executable, "-m", "gmeql", *command.arguments],
                    stdin=subprocess.DEVNULL, stdout=result, stderr=log, env=same_packages(),
                    start_new_session=True,  # Ctrl-C in the server's terminal reaches it through `close` alone
                )  # fmt: skip
            code = command.process.wait()
        with self._lock:
            if (folder / REPORT).is_file():
                self._end(command, "stopped" if command.stopping else "done", "")
            elif command.stopping:
                self._end(command, "stopped", "stopped before anything was found")
            else:
                said = last_line(folder).removeprefix("gmeql: ")
                self._end(command, "failed", said[:500] or f"it ended with code {code} and said nothing")
            del self._commands[command.name]


def equations_of(record: dict[str, Any], result: dict[str, Any]) -> list[str]:
    """What was found, one line for each function."""
    logits = {one["class"]: one["formula"] for one in result.get("formulas", ()) if record["kind"] == "classes"}
    found = result.get("solution") or result.get("equations") or logits
    form, primes = LEFT.get(record["kind"], "{name} = {right}"), record.get("primes", "'")
    return [form.format(name=name, right=right, primes=primes) for name, right in found.items()]
