"""The page of `gmeql ui` under queued runs, idle connections, uploads past its limit and a killed server."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from common import GMEQL, SECONDS, Report, write_table


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
