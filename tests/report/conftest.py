"""The browser for the tests of this folder."""

from __future__ import annotations

from browsing import chromium, page, window

__all__ = ["chromium", "page", "window"]
