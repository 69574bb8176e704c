"""Starting the page: a socket on loopback, a token, uvicorn."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
import webbrowser
from pathlib import Path
from types import FrameType

from gmeql.model.files.storage import StorageError


def listen(port: int) -> socket.socket:
    """A socket on 127.0.0.1 and nothing else, already listening: a browser may come before the server has started."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(("127.0.0.1", port))
        found.listen(128)
    except OSError as error:
        found.close()
        raise StorageError(
            f"port {port} cannot be used ({error.strerror}); choose another --port, or 0 for any"
        ) from None
    return found


def serve(folder: Path, *, port: int = 0, open_browser: bool = True) -> None:
    """Serve the page until Ctrl-C. Prints its address, with the token, on stdout."""
    import uvicorn

    from gmeql.web.app import create_app

    token = secrets.token_urlsafe(24)
    sock = listen(port)
    address = f"http://127.0.0.1:{sock.getsockname()[1]}/?token={token}"
    app = create_app(folder, token)

    received: list[int] = []

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            received.append(sig)
            app.state.jobs.begin_to_close()  # the run saves itself and open streams end: nothing has to be waited for
            super().handle_exit(sig, frame)

    server = Server(
        uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=1)
    )
    print(address, flush=True)
    print(
        f"runs are kept in {folder.resolve()}; Ctrl-C ends the page, and they go on next time",
        file=sys.stderr,
        flush=True,
    )
    if open_browser:
        webbrowser.open(address)
    # uvicorn sends a signal again once it has ended; by then there is nothing left to do for it.
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    try:
        server.run(sockets=[sock])
    except KeyboardInterrupt:
        pass
    sys.stdout.flush()
    os._exit(128 + received[0] if received else 0)  # a search's threads may be in the middle of a step
