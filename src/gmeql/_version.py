"""The version of gmeql, read off its installation."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("gmeql")
except PackageNotFoundError:  # the source tree on sys.path without an installation
    __version__ = "0.0.0"
