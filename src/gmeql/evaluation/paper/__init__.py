"""The paper's evaluation, with one command: cells -> trained cells -> records -> figures -> page.

`run(budget, only, out)` is what `gmeql paper` calls. It trains the cells that the chosen figures need and that have
no record yet, and then draws everything from the records in `out`. Stop it at any time and start it again: finished
cells are skipped. A cell that dies is tried once more on its own and, if it dies again, reported on the page.
"""

from __future__ import annotations

from gmeql.evaluation.paper.run import run, take_over

__all__ = ["run", "take_over"]
