"""What the first edition computed, as plain values, and how values of today are held against it.

A record is JSON: objects and lists of numbers, names and booleans. Flattened it is a dict from
paths such as `dissection/rows/edges/12/flipped/count` to values. A list has its length at
`dissection/rows/edges/#`: so an item too many is seen, while a new field may come in.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

RECORDED = Path(__file__).parent

PROSE = {"statement", "statements", "remark", "verdict", "about", "words"}
"""Sentences, which may be written better at any time."""

PASSING = {"package_version", "seconds"}
"""What is not meant to be the same twice."""


def read(name: str) -> Any:
    """A record of the first edition."""
    return json.loads((RECORDED / f"{name}.json").read_text())


def facts(found: Any) -> Any:
    """A finding, or anything else that msgspec can write, as JSON without its sentences."""
    return _without_prose(msgspec.json.decode(msgspec.json.encode(found)))


def _without_prose(value: Any) -> Any:
    if isinstance(value, dict):
        told = {name: item for name, item in value.items() if name not in PROSE | PASSING}
        return {name: _without_prose(item) for name, item in told.items()}
    return [_without_prose(item) for item in value] if isinstance(value, list) else value


def short(numbers: Any) -> Any:
    """Numbers of 32 bits in the fewest digits that tell them apart: exact, and half the file."""
    found = np.asarray(numbers, dtype=np.float32)
    return np.array([float(str(x)) for x in found.ravel()]).reshape(found.shape).tolist()


def flat(record: Any, path: str) -> dict[str, Any]:
    """All values of a record by their paths."""
    return dict(_leaves(record, path))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        yield f"{path}/#", len(value)
        value = dict(enumerate(value))
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, f"{path}/{name}")
    else:
        yield path, value


def moved(path: str, renamed: Mapping[str, str | None]) -> str | None:
    """Where a value is today; None if it was dropped. A `*` stands for a place in a list."""
    parts = path.split("/")
    general = ["*" if part.isdigit() else part for part in parts]
    for length in range(len(parts), 0, -1):
        old = "/".join(general[:length])
        if old not in renamed:
            continue
        new = renamed[old]
        if new is None:
            return None
        places = (part for part in parts[:length] if part.isdigit())
        head = [next(places) if part == "*" else part for part in new.split("/")]
        return "/".join([*head, *parts[length:]])
    return path


def differences(
    recorded: Mapping[str, Any],
    today: Mapping[str, Any],
    *,
    renamed: Mapping[str, str | None],
    named: Mapping[str, str],
    relative: float = 0.0,
    absolute: float = 0.0,
) -> list[str]:
    """What is not as it was recorded, a line for each value.

    Without a tolerance, numbers have to be the same to the last bit.
    """
    lines = []
    for path, was in recorded.items():
        now_at = moved(path, renamed)
        if now_at is None:
            continue
        wanted = named.get(was, was) if isinstance(was, str) else was
        if now_at not in today:
            lines.append(f"{path} was {was!r}, and is not there")
        elif not _same(wanted, today[now_at], relative, absolute):
            lines.append(f"{path} was {was!r}, is {today[now_at]!r}")
    return lines


def _same(was: Any, now: Any, relative: float, absolute: float) -> bool:
    """A count is never within rounding of another: only numbers with a point are."""
    if isinstance(was, float) and isinstance(now, float):
        return math.isclose(was, now, rel_tol=relative, abs_tol=absolute)
    return type(was) is type(now) and was == now


def this_machine() -> dict[str, str]:
    """What the last bit of a result depends on, apart from our own code. For one thread.

    The same products as in a model, so that a library that adds up in another order is seen.
    """
    draws = np.random.default_rng(0)
    rows, wide, back = (
        torch.from_numpy(draws.standard_normal(shape, dtype=np.float32))
        for shape in ((192, 510), (510, 2040), (2040, 510))
    )
    inside = torch.nn.functional.layer_norm(rows, (510,)) @ wide
    results = [inside, inside.relu() @ back, inside.log_softmax(-1), rows.T @ inside]
    results += [rows[:2] @ wide, rows.double() @ wide.double(), inside.exp().mean(0)]
    digest = hashlib.sha256()
    for result in results:
        digest.update(result.contiguous().numpy().tobytes())
    return {
        "torch": torch.__version__,
        "numpy": np.__version__,
        "capability": torch.backends.cpu.get_cpu_capability(),
        "processor": _processor(),
        "results_sha256": digest.hexdigest(),
    }


def _processor() -> str:
    listed = Path("/proc/cpuinfo")
    text = listed.read_text() if listed.exists() else ""
    told = re.findall(
        r"^(?:model name|cpu family|model)\s*: (.*)$", text.partition("\n\n")[0], re.M
    )
    return " ".join([platform.machine(), *told]) if told else platform.processor()
