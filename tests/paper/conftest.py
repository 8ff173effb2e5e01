"""Two workers, whatever machine this is."""

import pytest

from carryscope.core import workers


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever machine this is, two workers are tried."""
    monkeypatch.setattr(workers, "cores", lambda: 2)


@pytest.fixture(autouse=True)
def called_as_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages name the program that was called."""
    monkeypatch.setattr("sys.argv", ["paper/__main__.py"])
