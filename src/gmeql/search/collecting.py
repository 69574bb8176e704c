"""The interpreter's look for garbage, which holds up every thread: a search has it pass over what was there before.

After some imports there are hundreds of thousands of objects, all of which are gone through now and then, for a tenth of a
second or more, because a search makes many new ones. None of those of before has become garbage because of that.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def among_new_objects() -> Iterator[None]:
    """Meanwhile garbage is looked for among objects that are made from now on."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
