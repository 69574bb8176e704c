"""What kernels hit comes back look by look, as far as there was room."""

from __future__ import annotations

import numpy as np
from host_cuda import HostDriver

from gmeql.search.deep.hits import Hits
from gmeql.search.deep.source import HIT, HITS


def test_each_look_has_its_own_room() -> None:
    hits = Hits(HostDriver(), 3, 2)
    assert len(hits.found()) == 0
    hits._counts.view(np.int32)[:] = (1, 0, 5)
    there = hits._hits.view(HIT).reshape(3, 2)
    there["code"] = [[7, 0], [0, 0], [8, 9]]
    hits.wait()
    assert hits.found()["code"].tolist() == [7, 8, 9]
    record = hits.there.view(HITS)[0]
    assert record["hits"] == hits._hits.ctypes.data and record["counts"] == hits._counts.ctypes.data
