"""The numbers of programs: one name per opcode of the operator table, and how long a program may be.

Compiled code takes these numbers in as if they stood there literally, so names cost nothing.
"""

from __future__ import annotations

from gmeql.formula import operators

ID, ADD, SUB, MUL, DIV = (operators.get_operator(name).opcode for name in ("id", "add", "sub", "mul", "div"))
SIN, COS, TANH = (operators.get_operator(name).opcode for name in ("sin", "cos", "tanh"))
ASIN, ACOS, ATAN = (operators.get_operator(name).opcode for name in ("asin", "acos", "atan"))
EXP, LOG, SQRT, ABS = (operators.get_operator(name).opcode for name in ("exp", "log", "sqrt", "abs"))
SQUARE, CUBE, POW4, POW5, POW6 = (
    operators.get_operator(name).opcode for name in ("square", "cube", "pow4", "pow5", "pow6")
)
INV, NEG, POW = (operators.get_operator(name).opcode for name in ("inv", "neg", "pow"))
SUM, PROD = (operators.get_operator(name).opcode for name in ("sum", "prod"))

POWER_FITTED = 50
"""Opcode of left ** constant, for a positive left; the exponent is the node's right constant."""
POWER_WHOLE = 51
"""Opcode of left ** right, where `right` is the whole exponent itself."""
USER_OPCODE = operators.USER_OPCODE
"""Opcodes from here on belong to operators that users registered, which compiled code does not know."""

MAX_NODES = 96
"""Nodes a program may have; the kernel's scratch memory is sized by it."""
MAX_CONSTANTS = 40
"""Constants a program may have."""
