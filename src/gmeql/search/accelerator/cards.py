"""The accelerators that a search uses: asked for, or found to be faster while it runs."""

from __future__ import annotations

import importlib.util
import os
import tempfile
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import IO

from gmeql.fitters.cuda.driver import AcceleratorError, drivers, why_not
from gmeql.search.accelerator.stage import Card, preparations


def open_cards() -> list[Card]:
    """Every accelerator of this machine with its kernels compiled."""
    found = drivers()
    sources = [prepare for driver in found for prepare in preparations(driver)]
    with ThreadPoolExecutor(len(sources)) as pool:  # the compiler takes one core for each, and they are independent
        compiled = [pool.submit(prepare) for prepare in sources]
        cards = [Card(driver) for driver in found]  # meanwhile drivers take the devices, and memory
        for each in compiled:
            each.result()
    return cards


def required_cards() -> list[Card]:
    """The accelerators for device="gpu"; a clear word where there are none, and none with one line where others fill them."""
    if why_not():
        raise ValueError(f"device='gpu', but {why_not()}; use device='auto' or 'cpu'")
    try:
        return open_cards()
    except AcceleratorError as error:
        say_fallback(error)
        return []


def say_fallback(error: AcceleratorError) -> None:
    """One line for the user: the search goes on without."""
    warnings.warn(
        f"the accelerator failed ({error}); the search goes on on the processor", RuntimeWarning, stacklevel=2
    )


class Claim:
    """The accelerators of this machine for one search of this user, until it lets go or its process ends.

    Searches that were told to use them (device="gpu") share them; those that only would like to (device="auto") come
    after those and after each other. Where the system knows no such locks, nobody is held back.
    """

    def __init__(self, *, shared: bool) -> None:
        self.is_held = True
        self._file: IO[bytes] | None = None
        try:
            import fcntl
        except ImportError:
            return
        user = os.getuid()
        path = Path(tempfile.gettempdir()) / f"gmeql-accelerators-{user}.lock"
        try:
            file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+b")
        except OSError:
            return
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            self._file = file
        except OSError:
            self.is_held = shared  # a search that was told to goes on beside the others
            file.close()

    def let_go(self) -> None:
        """Let others have them."""
        self.is_held = False
        if self._file is not None:
            self._file.close()
            self._file = None


class Preparation:
    """Accelerators made ready beside a running search, which does not wait for them."""

    def __init__(self) -> None:
        self.cards: list[Card] = []
        self.claim = Claim(shared=False)
        self.thread = threading.Thread(target=self._open, name="gmeql-accelerator", daemon=True)
        self.thread.start()

    @staticmethod
    @lru_cache(maxsize=1)
    def is_thinkable() -> bool:
        """Whether it is worth a try: CuPy is installed."""
        return importlib.util.find_spec("cupy") is not None

    def _open(self) -> None:
        try:
            if self.claim.is_held and not why_not():
                self.cards = open_cards()
        except AcceleratorError as error:
            say_fallback(error)

    def ready(self) -> list[Card]:
        """The accelerators, once they are ready; nothing before, and nothing where there are none or others have them."""
        return [] if self.thread.is_alive() else self.cards

    def give_back(self) -> None:
        """Let other searches have them."""
        self.cards = []
        self.claim.let_go()
