"""Waiting for what another process does."""

import time
from collections.abc import Callable

PATIENCE = 120.0


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
