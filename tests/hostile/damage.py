"""What can be wrong with a run that came from elsewhere: kinds of damage, files, commands.

A *damage* takes the path of a file of a run and spoils it. Those of `BYTES` spoil any file; those
of `RECORDS` write JSON that parses and does not fit. A *command* names what is called on the run,
and which files it cannot do without.
"""

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

HOSTILE_TEXT = "[/x] \x1b[2J\x07 \u202e <script>alert(1)</script> {{ 7*7 }} `"

FINDINGS = ("training", "dissection", "risk", "faithfulness", "certificate")
JSON_FILES = ("config.json", *(f"findings/{name}.json" for name in FINDINGS))
FILES = (*JSON_FILES, "model.safetensors", "metrics.jsonl")

Damage = Callable[[Path], None]


class Command(NamedTuple):
    words: tuple[str, ...]
    """RUN stands for the run."""
    needs: tuple[str, ...]
    """Files without which it must fail."""
    writes: tuple[str, ...] = ()
    """What it may add to the run, or make again, if it ends well."""


MODEL = ("config.json", "model.safetensors")

COMMANDS = {
    "ask": Command(("ask", "RUN", "1+2"), MODEL),
    "ask without": Command(("ask", "RUN", "1+2", "--without", "H0"), MODEL),
    "sites": Command(("sites", "RUN"), ("config.json",)),
    "train": Command(("train", "--out", "RUN", "--threads", "1"), ("config.json",), ("",)),
    "show": Command(("dissect", "RUN", "--show"), ("config.json", "findings/dissection.json")),
    "dissect": Command(("dissect", "RUN", "--only", "attention"), MODEL, ("findings",)),
    "risk": Command(("risk", "RUN", "--verbose"), MODEL, ("findings",)),
    "faithful": Command(("faithful", "RUN", "--verbose"), MODEL, ("findings",)),
    "certify": Command(
        ("certify", "RUN", "--until", "0.01", "--workers", "1", "--minutes", "0.001"),
        MODEL,
        ("findings",),
    ),
    "check": Command(
        ("certify", "RUN", "--check", "--workers", "1"),
        (*MODEL, "findings/certificate.json"),
        ("findings/certificate.json",),
    ),
    "export": Command(("export", "RUN"), MODEL, ("model.pth", "behaviors.json", "features.json")),
    "explorer": Command(("explorer", "RUN"), MODEL, ("explorer.html",)),
    "figures": Command(
        ("figures", "RUN", "--only", "staircase", "--out", "RUN/figures"),
        ("config.json", "findings/dissection.json"),
        ("figures",),
    ),
}


def _rewritten(change: Callable[[bytes], bytes]) -> Damage:
    return lambda path: path.write_bytes(change(path.read_bytes()))  # type: ignore[return-value]


def _replaced_by(make: Callable[[Path], object]) -> Damage:
    def damage(path: Path) -> None:
        path.unlink()
        make(path)

    return damage


BYTES: dict[str, Damage] = {
    "missing": lambda path: path.unlink(),
    "empty": _rewritten(lambda content: b""),
    "cut in half": _rewritten(lambda content: content[: len(content) // 2]),
    "one byte short": _rewritten(lambda content: content[:-2]),
    "random bytes": _rewritten(lambda content: random.Random(0).randbytes(len(content))),
    "zeros": _rewritten(lambda content: bytes(len(content))),
    "not UTF-8": _rewritten(lambda content: content[:40] + b"\xff\xfe" + content[40:]),
    "another kind of file": _rewritten(lambda content: b"PK\x03\x04 this is a zip, or says so"),
    "nested too deep": _rewritten(lambda content: b"[" * 100_000),
    "a huge header": _rewritten(lambda content: b"\xff" * 8 + content[8:]),
    "a directory": _replaced_by(Path.mkdir),
    "a pipe": _replaced_by(os.mkfifo),
    "a link to nowhere": _replaced_by(lambda path: path.symlink_to(path.parent / "nowhere")),
    "a link to itself": _replaced_by(lambda path: path.symlink_to(path)),
}
"""Damage to any file. All but the last bytes of a text count."""


def torn(where: float) -> Damage:
    """A few bytes changed, somewhere."""

    def change(content: bytes) -> bytes:
        at = int(where * len(content))
        return content[:at] + random.Random(where).randbytes(4) + content[at + 4 :]

    return _rewritten(change)


Spoil = Callable[[Any], Any]

VALUES: dict[str, tuple[type | tuple[type, ...], Spoil]] = {
    "lists emptied": (list, lambda _: []),
    "lists doubled": (list, lambda value: value + value),
    "lists cut": (list, lambda value: value[:-1]),
    "texts hostile": (str, lambda _: HOSTILE_TEXT),
    "texts of 5,000 digits": (str, lambda _: "9" * 5000),
    "texts empty": (str, lambda _: ""),
    "numbers negative": ((int, float), lambda _: -1),
    "numbers zero": ((int, float), lambda _: 0),
    "numbers huge": ((int, float), lambda _: 10**18),
    "numbers beyond": ((int, float), lambda _: 1e308),
    "everything null": (object, lambda _: None),
    "dicts emptied": (dict, lambda _: {}),
    "types exchanged": (object, lambda value: [value]),
}
"""What becomes of the values of a record, by their type."""


def places(record: Any, kind: type | tuple[type, ...]) -> Iterator[tuple[Any, Any]]:
    """Where values of a type stand in a record: what holds each, and its key there."""
    items = record.items() if isinstance(record, dict) else enumerate(record)
    for key, value in list(items):
        if key == "log":  # of a certificate: tests/certificate forge it
            continue
        if isinstance(value, kind) and not isinstance(value, bool):
            yield record, key
        if isinstance(value, dict | list):
            yield from places(value, kind)


def spoiled(name: str, seed: int) -> Damage:
    """One value of a record spoiled, drawn by a seed."""
    kind, spoil = VALUES[name]

    def damage(path: Path) -> None:
        record = json.loads(path.read_bytes())
        if found := list(places(record, kind)):
            holder, key = random.Random(f"{name} {seed}").choice(found)
            holder[key] = spoil(holder[key])
        path.write_text(json.dumps(record))

    return damage
