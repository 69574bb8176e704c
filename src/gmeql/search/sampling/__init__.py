"""Drawing candidates of the fitted method, compiled: copy an elite, re-sample connections, write the program.

Sections 4.2 and 4.3 of the paper, with hard choices: a candidate copies an elite drawn by rank (`draw.py`), some of its
active connections are re-sampled from the structure parameters or re-wired (`moves.py`), and what it spells is compared
with all that was tried (`tried.py`). The wiring is turned into a flat program for `gmeql.fitters` (`compile.py`).
"""
