"""A certificate kept in a run directory: what is proved stays proved, and the search goes on.

In: a run directory and its model. Out: the `Certificate`, on disk every minute and at the end.
The certificate is its own checkpoint: the log holds the open boxes too.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from carryscope.certificate.certify import (
    MINUTES,
    UNTIL,
    Progress,
    check_about,
    search,
)
from carryscope.certificate.features import check_supported
from carryscope.certificate.finding import (
    CERTIFICATE_FILE,
    Certificate,
    read_certificate,
)
from carryscope.core.storage import only_writer, write_json
from carryscope.model.transformer import Transformer


def keep_certificate(
    directory: Path,
    model: Transformer,
    *,
    until: float | None = None,
    minutes: float | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    again: bool = False,
    on_progress: Callable[[Progress], bool | None] = lambda _: None,
) -> Certificate:
    """Prove as much as is asked for, going on from what is proved; `again` starts anew."""
    check_supported(model.config)
    until = UNTIL if until is None else until
    path = directory / CERTIFICATE_FILE
    known = read_certificate(directory) if path.exists() and not again else None
    if known is not None and known.ended != "still running" and known.decided >= until:
        check_about(known, model)
        return known
    with only_writer(directory):
        found = search(
            model,
            known=known,
            until=until,
            minutes=MINUTES if minutes is None else minutes,
            workers=(os.cpu_count() or 1) if workers is None else workers,
            cluster=cluster,
            keep=lambda certificate: write_json(path, certificate),
            on_progress=on_progress,
        )
        write_json(path, found)
    return found
