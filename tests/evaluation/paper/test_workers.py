"""Worker processes that die are replaced, and what failed is reported."""

from gmeql.evaluation.paper import records, workers
from gmeql.evaluation.paper.cells import Cell
from fake_records import fake_job


def test_a_dying_worker_is_replaced_and_its_cell_reported(tmp_path):
    cells = [Cell(p, "eql", seed=s) for p in ("b1", "b3", "b4") for s in range(2)]
    lines = []
    pool = workers.TrainingPool(tmp_path, len(cells), lines.append, job=fake_job)
    pool.work([cells[:2], cells[2:4], cells[4:]], 1)
    status = {key: r["status"] for key, r in records.load(tmp_path).items()}
    assert len(status) == 6
    assert sorted(key for key, value in status.items() if value == "failed") == sorted(
        c.key for c in cells if c.problem == "b4" or (c.problem, c.seed) == ("b3", 1)
    )
    assert any("died" in line for line in lines) and any("no luck" in line for line in lines)
