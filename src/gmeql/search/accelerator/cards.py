"""The accelerators that a search uses: asked for, or found to be faster while it runs."""

from __future__ import annotations

import importlib.util
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

from gmeql.fitters.cuda.driver import AcceleratorError, drivers, why_not
from gmeql.search.accelerator.stage import Card


def open_cards() -> list[Card]:
    """Every accelerator of this machine with its kernels compiled."""
    cards = [Card(driver) for driver in drivers()]
    preparations = [prepare for card in cards for prepare in card.preparations()]
    with ThreadPoolExecutor(
        len(preparations)
    ) as pool:  # the compiler takes one core for each, and they are independent
        list(pool.map(lambda prepare: prepare(), preparations))
    return cards


def required_cards() -> list[Card]:
    """The accelerators for device="gpu"; a clear word where there are none."""
    if why_not():
        raise ValueError(f"device='gpu', but {why_not()}; use device='auto' or 'cpu'")
    return open_cards()


def say_fallback(error: AcceleratorError) -> None:
    """One line for the user: the search goes on without."""
    warnings.warn(
        f"the accelerator failed ({error}); the search goes on on the processor", RuntimeWarning, stacklevel=2
    )


class Preparation:
    """Accelerators made ready beside a running search, which does not wait for them."""

    def __init__(self) -> None:
        self.cards: list[Card] = []
        self.thread = threading.Thread(target=self._open, name="gmeql-accelerator", daemon=True)
        self.thread.start()

    @staticmethod
    def is_thinkable() -> bool:
        """Whether it is worth a try: CuPy is installed."""
        return importlib.util.find_spec("cupy") is not None

    def _open(self) -> None:
        try:
            if not why_not():
                self.cards = open_cards()
        except AcceleratorError as error:
            say_fallback(error)

    def ready(self) -> list[Card]:
        """The accelerators, once they are ready; nothing before, and nothing where there are none."""
        return [] if self.thread.is_alive() else self.cards
