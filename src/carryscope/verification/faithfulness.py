"""How far a stated algorithm tells what a model does, outside and inside.

In: a model, and its dissection if there is one. Out: `FaithfulnessFinding`, kept as JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from carryscope.core.errors import CallError
from carryscope.core.storage import read_json, write_json
from carryscope.dissection.attention import study_attention
from carryscope.dissection.engine import Engine
from carryscope.dissection.findings import Dissection
from carryscope.dissection.samples import Samples
from carryscope.model.files import weights_hash
from carryscope.model.transformer import Transformer
from carryscope.verification.agreement import AgreementFinding, answer_digits, study_agreement
from carryscope.verification.algorithms import Algorithm, shipped
from carryscope.verification.faithfulness_verdict import faithfulness_verdict
from carryscope.verification.own_algorithm import own_algorithm
from carryscope.verification.partition import partition
from carryscope.verification.scrubbing import BASES, POOL, Scrubbed, study_inside
from carryscope.verification.stratified import FLOOR, SHARED, Sample
from carryscope.verification.table import LearnedDigit, learned_table
from carryscope.version import __version__

FAITHFULNESS_FILE = Path("findings") / "faithfulness.json"


class FaithfulnessFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A model against stated algorithms."""

    package_version: str
    weights_sha256: str
    seed: int
    digits: int
    questions: int
    """Questions asked for the agreement and taken apart for the inside, together."""
    agreement: AgreementFinding
    """What model and algorithms say."""
    inside: list[Scrubbed]
    """What stays when all that an algorithm calls irrelevant is exchanged."""
    table: list[LearnedDigit]
    """The learned table of each answer digit."""
    verdict: str
    """What it comes to, in a paragraph."""

    def answers(self, weights_sha256: str, seed: int, dissection: Dissection | None) -> bool:
        """Whether this is what would be found now, with the shipped algorithms."""
        same = (self.package_version, self.weights_sha256, self.seed) == (
            __version__,
            weights_sha256,
            seed,
        )
        found = dissection.first_digits if dissection else None
        names = [algorithm.name for algorithm in shipped(self.digits, found)]
        return same and names == [algorithm.name for algorithm in self.agreement.algorithms]


def faithful(
    model: Transformer,
    *,
    seed: int = 0,
    dissection: Dissection | None = None,
    own: Algorithm | Callable[..., Any] | None = None,
    on_progress: Callable[[int], object] = lambda _: None,
) -> FaithfulnessFinding:
    """Hold the shipped algorithms, and one of the user's own, against a model.

    `on_progress` hears how many answers were computed; see `expected_answers`.
    """
    digits, weights = model.config.digits, weights_hash(model)
    if dissection is not None and dissection.weights_sha256 != weights:
        raise CallError("The dissection must be of this model. Got one of other weights.")
    algorithms = _algorithms(digits, dissection, own)
    samples = Samples(digits, seed)
    sample = Sample.draw(samples.generator("agreement"), digits)
    said = answer_digits(model, sample, on_progress)
    agreement = study_agreement(sample, said, algorithms, model.config.layout)
    engine = Engine(model, samples.varied[:1])  # its means, over one question, are not used
    attention = dissection.attention if dissection else None
    attention = attention or study_attention(engine, samples)
    inside = study_inside(engine, samples, attention, algorithms, on_progress)
    table = learned_table(sample, said)
    return FaithfulnessFinding(
        package_version=__version__,
        weights_sha256=weights,
        seed=seed,
        digits=digits,
        questions=len(sample) + POOL,
        agreement=agreement,
        inside=inside,
        table=table,
        verdict=faithfulness_verdict(agreement, inside, table),
    )


def _algorithms(
    digits: int, dissection: Dissection | None, own: Algorithm | Callable[..., Any] | None
) -> list[Algorithm]:
    """All candidates, the user's own before the control that is wrong on purpose."""
    *candidates, control = shipped(digits, dissection.first_digits if dissection else None)
    if own is not None:
        stated = own_algorithm(own, digits, name=getattr(own, "__name__", "own algorithm"))
        if stated.name in {a.name for a in (*candidates, control)}:
            stated = replace(stated, name=f"{stated.name} (own)")
        candidates.append(replace(stated, control=False))
    return [*candidates, control]


def expected_answers(digits: int) -> int:
    """How many answers are computed, more or less: claims that algorithms share are tested once."""
    asked = SHARED + FLOOR * len(partition(digits))
    algorithms = len(shipped(digits)) + 1
    return asked + POOL + 2 * algorithms * (digits + 1) * BASES


def read_faithfulness(directory: Path) -> FaithfulnessFinding:
    """The finding in a run directory."""
    path = directory / FAITHFULNESS_FILE
    if not path.exists():
        raise CallError(
            f"{directory} has not been held against any algorithm. "
            f"Run: carryscope faithful {directory}"
        )
    return read_json(path, FaithfulnessFinding)


def write_faithfulness(finding: FaithfulnessFinding, directory: Path) -> Path:
    """Leave the finding in a run directory."""
    path = directory / FAITHFULNESS_FILE
    write_json(path, finding)
    return path
