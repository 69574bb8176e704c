"""The version of gmeql, read off its installation, and the versions that a result depends on."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("gmeql")
except PackageNotFoundError:  # the source tree on sys.path without an installation
    __version__ = "0.0.0"

REPORTED_PACKAGES = ("numpy", "scipy", "numba", "jax", "scikit-learn", "sympy", "polars")
"""Packages whose version can change a number of a result."""


def versions(*more: str) -> dict[str, str]:
    """Versions of gmeql, Python and the packages a result depends on, those of `more` among them.

    What every stored result says about where it comes from; packages that are not installed are left out.

    >>> list(versions())[:3]
    ['gmeql', 'python', 'platform']
    """
    import platform

    found = {"gmeql": __version__, "python": platform.python_version(), "platform": platform.platform()}
    for package in (*REPORTED_PACKAGES, *more):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
