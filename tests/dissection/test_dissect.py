"""A dissection as a whole: any model, part by part."""

from contextlib import contextmanager

import msgspec
import pytest

from carryscope.core.errors import CallError
from carryscope.core.progress import Stopped
from carryscope.dissection.dissect import EXPERIMENTS, Dissection, chosen_parts, dissect
from carryscope.fits import check_fit
from carryscope.training.losses import StepRecord

SHAPES = {
    "one digit, one head": {"digits": 1, "heads": 1},
    "two layers": {"digits": 2, "layers": 2},
    "three layers, signed, two heads": {"digits": 1, "layers": 3, "heads": 2, "format": "signed"},
    "attention only": {"digits": 2, "d_mlp": 0},
    "four heads, 15 tokens": {"digits": 3, "heads": 4, "vocabulary": 15, "format": "signed"},
    "ten digits": {"digits": 10, "heads": 2, "d_model": 16},
}


@pytest.fixture
def few_questions(monkeypatch):
    """Smaller samples: these tests ask whether it works, not what it finds."""
    for name, value in {
        "samples.PER_CLASS": 20,
        "samples.BATCHES": 1,
        "ablations.EDGE_QUESTIONS": 16,
        "subtasks.SEARCH_PAIRS": 100,
        "paths.PATH_PAIRS": 100,
        "keys.KEY_QUESTIONS": 200,
    }.items():
        monkeypatch.setattr(f"carryscope.dissection.{name}", value)


def dissected(model, *args, **options) -> Dissection:
    *_, found = dissect(model, *args, **options)
    return found


class Watched:
    """Progress that notes every part; before one of them it stops the work."""

    def __init__(self, stop_before=None):
        self.parts, self.answers, self.stop_before = [], {}, stop_before

    @contextmanager
    def __call__(self, name, total=None, unit=""):
        def advance(amount=1, note=""):
            self.answers[name] = self.answers.get(name, 0) + amount

        if name == self.stop_before:
            raise Stopped("Stopped.")
        self.parts.append(name)
        yield advance


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_any_model_can_be_dissected(shape, random_model, few_questions):
    found = dissected(random_model(**shape))
    skipped = {"story", "mlp" if "layers" in shape else "paths"}
    skipped |= {"mlp"} if shape.get("d_mlp") == 0 else set()
    assert {part for part in EXPERIMENTS if getattr(found, part) is None} == skipped
    assert set(found.statements()) == set(EXPERIMENTS) - skipped
    again = msgspec.json.decode(msgspec.json.encode(found), type=Dissection)
    assert again == found
    check_fit(found, found.model)


def test_the_same_seed_gives_the_same_findings_and_another_one_others(random_model, few_questions):
    model = random_model(digits=2)
    parts = ["attention", "nodes", "mlp"]
    first, again, other = (dissected(model, seed=seed, parts=parts) for seed in (0, 0, 1))
    assert msgspec.json.encode(first) == msgspec.json.encode(again)
    assert (first.seed, other.seed) == (0, 1)
    assert other.nodes != first.nodes


def test_what_is_known_is_not_made_again(random_model, few_questions):
    model, watched = random_model(digits=2), Watched()
    known = dissected(model, parts=["attention"], progress=watched)
    both = dissected(model, parts=["attention", "nodes"], known=known, progress=watched)
    assert watched.parts == ["attention", "nodes"]
    assert both.attention is known.attention
    assert list(dissect(model, parts=["attention"], known=known, progress=watched)) == [known]


def test_parts_found_before_a_stop_are_handed_over(random_model, few_questions):
    work = dissect(random_model(digits=2), progress=Watched(stop_before="edges"))
    found = [next(work), next(work)]
    with pytest.raises(Stopped):
        next(work)
    assert [one.attention is not None for one in found] == [False, True]


def test_every_part_says_how_far_it_is(random_model, few_questions):
    watched = Watched()
    dissected(random_model(digits=2, layers=2), progress=watched)
    assert watched.parts == [part for part in EXPERIMENTS if part not in ("mlp", "story")]
    assert all(watched.answers[part] > 0 for part in watched.parts)


def test_the_keys_bring_what_heads_read_with_them(random_model, few_questions):
    assert dissected(random_model(digits=2), parts=["mlp"]).attention is not None


def test_the_story_needs_only_the_metrics(random_model):
    steps = [StepRecord(i, 2.0, [2.0] * 3, {"BA": [2.0] * 3}, {"BA": [64] * 3}) for i in (1, 2)]
    found = dissected(random_model(digits=2), lambda: steps, parts=["story"])
    assert found.story.steps == 2
    assert found.attention is None


def test_a_part_that_does_not_exist_is_refused():
    with pytest.raises(CallError, match="has the parts attention, edges, .* Got 'hands'"):
        chosen_parts("attention,hands")
    assert chosen_parts("nodes, attention") == ("attention", "nodes")
    assert chosen_parts(None) == EXPERIMENTS
