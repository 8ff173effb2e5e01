"""Studies are made in this process, and messages name the program that was called."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from carryscope.core.workers import this_process


@pytest.fixture(scope="module", autouse=True)
def in_this_process() -> Iterator[None]:
    """What runs side by side is tested elsewhere: no process is started here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "carryscope.sweeps.running.local_workers",
            lambda count, *, threads, shared: nullcontext(this_process(shared)),
        )
        yield


@pytest.fixture(autouse=True)
def called_as_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages name the program that was called."""
    monkeypatch.setattr("sys.argv", ["paper/__main__.py"])
