"""A dask cluster."""

from collections.abc import Iterator

import pytest


@pytest.fixture
def cluster() -> Iterator[str]:
    """A real dask scheduler on loopback with two worker processes."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=":0"
    ) as started:
        yield started.scheduler_address
