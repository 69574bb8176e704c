"""A server of the page with a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from gmeql.web.app import create_app
from web_client import BASE, TOKEN


@pytest.fixture
def client(tmp_path: Path):
    with TestClient(create_app(tmp_path / "runs", TOKEN), base_url=BASE, follow_redirects=False) as found:
        yield found
