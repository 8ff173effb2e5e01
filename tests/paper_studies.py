"""Studies that the tests of claims share: the shipped model, a built adder, an untrained model."""

import dataclasses
from functools import cache

import msgspec
import torch
from built_adder import built_adder

import carryscope
from carryscope.core.evidence import Mean
from carryscope.dissection.dissect import dissect
from carryscope.model.config import FORMAT_VERSION, ModelConfig
from carryscope.model.files import weights_hash
from carryscope.model.prediction import predict
from carryscope.model.transformer import Transformer, initialise
from carryscope.report.shelf import Shelf
from carryscope.task.questions import Questions
from carryscope.training.config import RunConfig
from carryscope.verification.faithfulness import faithful
from carryscope.verification.judging import Mistakes
from carryscope.verification.risk import RiskFinding, judged_risk
from paper.claims.claims import load_claims
from paper.claims.judging import judge_one
from paper.claims.reading import Study, study_of
from paper.exam import sit


@cache
def shipped() -> Study:
    """The shipped model, in the place of the paper's."""
    run = carryscope.load()
    return dataclasses.replace(study_of("paper-5", run), known_exam=sit(run.model()))


@cache
def adder() -> Study:
    """An adder that performs Algorithm 1, and was never trained."""
    return _studied(built_adder())


@cache
def untrained() -> Study:
    """A model that cannot add."""
    config = ModelConfig(d_model=24)
    return _studied(initialise(Transformer(config), torch.Generator().manual_seed(0)))


def _studied(model: Transformer) -> Study:
    *_, found = dissect(model)
    shelf = Shelf(
        name="built",
        where="runs/built",
        config=RunConfig(format_version=FORMAT_VERSION, model=model.config, source="built"),
        weights_sha256=weights_hash(model),
        dissection=found,
        risk=_risk(model),
        faithfulness=faithful(model, dissection=found),
    )
    return Study("paper-5", shelf, tuple, sit(model))


def _risk(model: Transformer) -> RiskFinding:
    """Its risk, teacher-forced, which is all that claims ask and a sixth of the work."""

    def judge(questions: Questions) -> Mistakes:
        wrong = ~predict(model, questions, free_running=False).right
        return Mistakes(wrong, wrong)

    layout = model.config.layout
    return judged_risk(
        judge,
        layout.digits,
        layout.answer_names,
        weights_sha256=weights_hash(model),
        seed=0,
        width=1.0,
        budget=20_000,
    )


def verdicts(*claims: str, **runs: Study) -> dict[str, str]:
    """The verdicts on some claims, or on all; `paper_5=...` stands for the run
    paper-5, and for paper-5-long if that is not named."""
    if "paper_5" in runs:
        runs.setdefault("paper_5_long", runs["paper_5"])
    studies = {name.replace("_", "-"): study for name, study in runs.items()}
    named = {name: dataclasses.replace(study, name=name) for name, study in studies.items()}
    asked = [claim for claim in load_claims() if not claims or claim.id in claims]
    return {claim.id: judge_one(claim, named).verdict.value for claim in asked}


def verdict(claim: str, **runs: Study) -> str:
    """The verdict on one claim."""
    return verdicts(claim, **runs)[claim]


def altered(study: Study, path: str, **fields) -> Study:
    """A study in which a record, such as `dissection.rows`, has other fields."""
    first, *rest = path.split(".")
    record = _replaced(getattr(study.shelf, first), rest, fields)
    return dataclasses.replace(study, shelf=dataclasses.replace(study.shelf, **{first: record}))


def _replaced(record, path, fields):
    if not path:
        return msgspec.structs.replace(record, **fields)
    inner = _replaced(getattr(record, path[0]), path[1:], fields)
    return msgspec.structs.replace(record, **{path[0]: inner})


def mean(low: float, high: float) -> Mean:
    """A mean of which the interval counts."""
    return Mean((low + high) / 2, 100, low, high)
