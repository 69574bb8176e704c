"""A server of the page with a folder of its own, and the browser, for the tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import chromium, page, window
from starlette.testclient import TestClient

from gmeql.web.app import create_app
from web_client import BASE, TOKEN

__all__ = ["chromium", "client", "page", "window"]


@pytest.fixture
def client(tmp_path: Path):
    with TestClient(create_app(tmp_path / "runs", TOKEN), base_url=BASE, follow_redirects=False) as found:
        yield found
