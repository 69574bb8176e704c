"""Exported formulas run or compiled, and held against the values of their expressions."""

from __future__ import annotations

import ctypes
import runpy
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gmeql.formula.expression import Expression
from random_trees import comparable

COMPILER = shutil.which("gcc") or shutil.which("cc")


def assert_agrees(expression: Expression, other: Any, X: np.ndarray, rtol: float = 1e-12, **options: Any) -> None:
    keep = comparable(expression, X, **options)
    other = np.broadcast_to(np.asarray(other, float), (len(X),))
    np.testing.assert_allclose(other[keep], expression(X)[keep], rtol=rtol, err_msg=expression.exact())


def run_python(source: str, folder: Path) -> Callable[..., Any]:
    path = folder / "exported.py"
    path.write_text(source, encoding="utf-8")
    return runpy.run_path(str(path))["formula"]


def compile_c(source: str, folder: Path) -> Callable[[np.ndarray], np.ndarray]:
    path, library = folder / "formula.c", folder / f"formula{len(list(folder.iterdir()))}.so"
    path.write_text(source, encoding="ascii")
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-parentheses", "-pedantic", "-O0"]
    subprocess.run([str(COMPILER), *flags, "-shared", "-fPIC", str(path), "-o", str(library), "-lm"], check=True)
    function = ctypes.CDLL(str(library)).formula
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.POINTER(ctypes.c_double)]
    pointer = ctypes.POINTER(ctypes.c_double)
    return lambda X: np.array([function(np.ascontiguousarray(row).ctypes.data_as(pointer)) for row in X])
