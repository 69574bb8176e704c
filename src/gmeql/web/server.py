"""Starting the page: a socket on loopback, a token, uvicorn."""

from __future__ import annotations

import secrets
import signal
import socket
import sys
import webbrowser
from pathlib import Path

from gmeql.storage import StorageError


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
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=2)
    )
    print(address, flush=True)
    print(
        f"runs are kept in {folder.resolve()}; Ctrl-C ends the page, and they go on next time",
        file=sys.stderr,
        flush=True,
    )
    if open_browser:
        webbrowser.open(address)
    # uvicorn ends nicely on a signal and then sends it again: the process should end with the code that shells expect.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    server.run(sockets=[sock])
