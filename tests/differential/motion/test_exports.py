from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
import sympy
from motions import tree

from gmeql.differential.motion.exports import EXPORTS, export
from gmeql.differential.motion.measured import Columns
from gmeql.formula.expression import Expression

COLUMNS = Columns(("prey", "x"), ("in put",), 1, True)
EQUATIONS = [
    Expression(tree("prey - 2*prey*x + `in put`", COLUMNS.names), COLUMNS.names),
    Expression(tree("sin(t)*x + 3", COLUMNS.names), COLUMNS.names),
]
STATE, INPUT, TIME = np.array([0.7, 1.3]), 0.4, 2.0
VALUES = [0.7 - 2 * 0.7 * 1.3 + 0.4, np.sin(2.0) * 1.3 + 3]


def test_python_and_jax_compute_the_right_sides():
    for format, name in (("python", "right_side"), ("jax", "vector_field")):
        space: dict = {}
        exec(export(COLUMNS, EQUATIONS, format), space)  # noqa: S102
        assert np.allclose(space[name](TIME, STATE, lambda t: [INPUT]), VALUES, rtol=1e-6)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_c_computes_the_right_sides(tmp_path):
    source, library = tmp_path / "right_side.c", tmp_path / "right_side.so"
    source.write_text(export(COLUMNS, EQUATIONS, "c"))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-lm"], check=True)
    found = (ctypes.c_double * 2)()
    function = ctypes.CDLL(str(library)).right_side
    function.argtypes = [ctypes.c_double, *[ctypes.POINTER(ctypes.c_double)] * 3]
    function(TIME, (ctypes.c_double * 2)(*STATE), (ctypes.c_double * 1)(INPUT), found)
    assert np.allclose(list(found), VALUES)


def test_sympy_equations_are_of_functions_of_time():
    columns = Columns(("q",), (), 2, False)
    (equation,) = export(columns, [Expression(tree("-4*q - q_dot", columns.names), columns.names)], "sympy")
    t = sympy.Symbol("t", real=True)
    q = sympy.Function("q")(t)
    assert equation.lhs == q.diff(t, 2) and sympy.simplify(equation.rhs - (-4.0 * q - q.diff(t))) == 0


def test_text_and_latex_name_the_derivatives():
    columns = Columns(("q",), (), 2, False)
    equations = [Expression(tree("-4*q", columns.names), columns.names)]
    assert export(columns, equations, "text") == "q'' = -4*q"
    assert "\\ddot{q} &= -4\\, q" in export(columns, equations, "latex")


def test_every_format_is_there_and_others_are_refused():
    for format in EXPORTS:
        assert export(COLUMNS, EQUATIONS, format)
    with pytest.raises(ValueError, match="unknown export format 'fortran'; known: text"):
        export(COLUMNS, EQUATIONS, "fortran")
