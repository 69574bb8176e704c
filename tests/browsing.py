"""A real browser for tests of pages.

They need an installed Chromium. Without one they fail and say so; GMEQL_NO_BROWSER=1 says that this is meant.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import prepare_browser
import pytest

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
LINE = "a,b,y\n" + "".join(f"{i / 4},{i * i % 7},{2.5 * i / 4 + 3 * (i * i % 7)}\n" for i in range(1, 25))
HOSTILE = '<img src=x onerror="window.hacked=1">'


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A headless Chromium; no Chromium is a failure, not a skip."""
    if os.environ.get("GMEQL_NO_BROWSER") == "1":
        pytest.skip("GMEQL_NO_BROWSER=1: the browser tests are left out on purpose")
    path = prepare_browser.find(os.environ)
    if path is None:
        pytest.fail("no Chromium found: `make test` installs one; or name it in GMEQL_BROWSER, "
                    "or set GMEQL_NO_BROWSER=1 to leave these tests out", pytrace=False)  # fmt: skip
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.fail("playwright is not installed: pip install -e '.[dev]'", pytrace=False)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def window(chromium: Any) -> Iterator[Any]:
    """The page of a file's tests. One for each test would take twice the time: a process of the browser every time."""
    context = chromium.new_context()
    yield context.new_page()
    context.close()


@pytest.fixture
def page(window: Any) -> Iterator[Any]:
    """An empty page as wide as a desk, in light colours, of whose visits nothing is left to the next test.

    Its script errors, refused loads and requests to other hosts fail the test.
    """
    trouble: list[str] = []
    listeners = {
        "pageerror": lambda error: trouble.append(f"script error: {error}"),
        "console": lambda message: trouble.append(message.text) if message.type == "error" else None,
        "request": lambda request: trouble.append(request.url) if not is_local(request.url) else None,
    }
    window.set_viewport_size({"width": 1280, "height": 900})
    window.emulate_media(color_scheme="light")
    for name, listener in listeners.items():
        window.on(name, listener)
    window.trouble = trouble
    yield window
    assert window.url == "about:blank" or window.evaluate("localStorage.length + sessionStorage.length") == 0
    for name, listener in listeners.items():
        window.remove_listener(name, listener)
    window.goto("about:blank")
    window.context.clear_cookies()
    window.context.clear_permissions()
    assert [item for item in trouble if "ERR_CONNECTION_REFUSED" not in item and "ERR_INCOMPLETE" not in item] == []


def is_local(url: str) -> bool:
    return url.startswith(("file:", "data:", "http://127.0.0.1:", "about:"))
