"""The authors' files: their fields, their tags, their complexities."""

import numpy as np
import pytest

import carryscope
from carryscope.dissection.authors import behaviors, complexity, features
from carryscope.dissection.engine import Engine
from carryscope.dissection.samples import Samples
from carryscope.task.operation import ADD, MIXED, SUBTRACT
from carryscope.task.questions import parse_question


@pytest.mark.parametrize(
    ("text", "operation", "kind", "level"),
    [
        ("11111+22222", ADD, "Math.Add", 0),
        ("00008+00005", ADD, "Math.Add", 1),
        ("00445+00555", ADD, "Math.Add", 3),
        ("99999+00001", ADD, "Math.Add", 5),
        ("55555-11111", SUBTRACT, "Math.Sub", 0),
        ("00052-00018", SUBTRACT, "Math.Sub", 1),
        ("51112-41118", SUBTRACT, "Math.Sub", 4),
        ("00018-00052", SUBTRACT, "Math.Neg", 1),
        ("00012-00018", SUBTRACT, "Math.Neg", 2),
    ],
)
def test_complexity_is_how_far_a_carry_travels(text, operation, kind, level):
    kinds, levels = complexity(parse_question(text, 5, operation))
    assert (kinds[0], levels[0]) == (kind, level)


def test_behaviors_and_features_of_the_shipped_model_say_what_was_found():
    run = carryscope.load("fast-5")
    engine, found = run.engine(), run.dissection()
    nodes = {
        (n.position, n.layer, n.is_head, n.num): n.tags for n in behaviors(engine, engine.reference)
    }
    useful = [n for n in found.nodes.nodes if n.useful]
    assert len(nodes) == len(useful)
    for effect in useful:
        tags = nodes[effect.row, effect.layer, effect.head is not None, effect.head or 0]
        assert tags[0] == f"Fail%:{100 * effect.fails.estimate:.0f}"
        assert tags[2].startswith("Math.Add:S")
        assert any(tag.startswith("Attn:P") for tag in tags) == (effect.head is not None)
    algorithm = {f"P{n.position}.L{n.layer}.H{n.num}": n.tags for n in features(found) if n.is_head}
    for purpose in found.subtasks.purposes:
        if purpose.kind == "BA" and len(purpose.heads) == 1:
            assert f"Algo:A{purpose.column}.SA" in algorithm[purpose.node]


@pytest.mark.parametrize("operation", ["subtraction", "mixed"])
def test_a_model_that_subtracts_has_its_own_tags(random_model, operation):
    model = random_model(
        digits=2, layers=2, operation=operation, format="signed", vocabulary=15, d_model=36
    )
    asked = {"subtraction": SUBTRACT, "mixed": MIXED}[operation]
    questions = Samples.of(model.config.layout, 0).varied
    engine = Engine(model, questions)
    kinds, levels = complexity(questions)
    assert set(kinds) <= {"Math.Add", "Math.Sub", "Math.Neg"}
    assert ("Math.Add" in kinds) == (asked is MIXED)
    assert levels[kinds == "Math.Neg"].min() >= 1
    assert np.all(levels <= 5)
    for node in behaviors(engine, questions):
        assert {tag.partition(":")[0] for tag in node.tags} >= {"Fail%", "Impact"}
