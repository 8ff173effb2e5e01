"""Two workers, whatever machine this is."""

from collections.abc import Iterator

import pytest

from carryscope.core import workers


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever machine this is, two workers are tried."""
    monkeypatch.setattr(workers, "cores", lambda: 2)


@pytest.fixture
def cluster() -> Iterator[str]:
    """A real dask scheduler on loopback with two worker processes."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=":0"
    ) as started:
        yield started.scheduler_address
