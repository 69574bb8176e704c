"""The page listens on this computer only."""

from __future__ import annotations

import socket

import pytest

from gmeql.model.files.storage import StorageError
from gmeql.web.server import listen


def test_only_loopback_listens():
    found = listen(0)
    try:
        assert found.getsockname()[0] == "127.0.0.1" and found.family == socket.AF_INET
    finally:
        found.close()


def test_a_port_that_is_taken_is_named():
    taken = listen(0)
    try:
        port = taken.getsockname()[1]
        with pytest.raises(StorageError, match=f"port {port} cannot be used .*another --port"):
            listen(port)
    finally:
        taken.close()
