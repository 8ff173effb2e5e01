"""Every search on a model whose circuit is known, and on models that have none.

The built adder performs Algorithm 1: head 0 reads its own column, head 1 the one below, head
2 the one two below. So what must be found is known to the last node.
"""

from math import log, sqrt

import pytest
import torch
from built_adder import SCORE, Dims, built_adder

from carryscope.dissection.attention import study_attention
from carryscope.dissection.dissect import dissect
from carryscope.dissection.engine import UNCHANGED, Engine
from carryscope.dissection.interventions import Ablate
from carryscope.dissection.samples import Samples
from carryscope.dissection.subtasks import study_subtasks
from carryscope.model.config import ModelConfig
from carryscope.model.transformer import Transformer, initialise


def dissected(model, **options):
    *_, found = dissect(model, **options)
    return found


@pytest.fixture(scope="module")
def adder():
    return dissected(built_adder())


@pytest.fixture(scope="module")
def permuted():
    return dissected(built_adder(offsets=(2, 0, 1)), parts=["attention", "subtasks"])


@pytest.fixture(scope="module")
def untrained():
    config = ModelConfig(d_model=48)
    return dissected(initialise(Transformer(config), torch.Generator().manual_seed(1)))


def purposes(found) -> dict[str, str]:
    return {p.node: p.variable for p in found.subtasks.purposes}


def circuit(own: int, below: int, below_2: int, *, digits: int = 5) -> dict[str, str]:
    """The purposes of the built adder whose heads have these numbers."""
    expected = {}
    for k in range(digits + 1):
        place = f"P{3 * digits + 1 - k}.L0"
        if k < digits:
            expected[f"{place}.H{own}"] = f"BA({k})"
        if k >= 1:
            expected[f"{place}.H{below}"] = f"state({k - 1})" if k > 1 else "MC1(0)"
        if k >= 2:
            expected[f"{place}.H{below_2}"] = f"MC1({k - 2})"
        written = f"carry_in({k})" if k == digits else f"digit({k})" if k else "BA(0)"
        expected[f"{place}.MLP"] = written
    return expected


def test_the_search_finds_exactly_the_circuit(adder):
    assert purposes(adder) == circuit(0, 1, 2)
    assert adder.subtasks.missing == []


def test_permuted_heads_permute_the_findings(permuted):
    assert purposes(permuted) == circuit(1, 2, 0)
    assert "H1 reads the digit's own column" in permuted.attention.statement
    assert [head.offset for head in permuted.attention.heads] == [2, 0, 1]


def test_every_purpose_holds_in_every_pair_and_no_control_does(adder):
    for purpose in adder.subtasks.purposes:
        assert purpose.follows.count == purpose.follows.of >= 30
        assert (purpose.control_node is None) == (not purpose.heads), "an MLP has no control node"
        if purpose.control_node_follows:
            assert purpose.control_node_follows.high < purpose.follows.low
        assert purpose.follows_control.high < purpose.follows_this.low


@pytest.mark.parametrize(("offset", "missing"), [(2, "MC1({})"), (1, "state({})"), (0, "BA({})")])
def test_a_sub_task_that_was_removed_is_reported_missing(offset, missing):
    found = dissected(built_adder(without=(offset,)), parts=["subtasks"]).subtasks
    wanted = {f"A{k}: {missing.format(k - offset)}" for k in range(2, 5)}
    assert wanted <= set(found.missing)
    assert not any(f"H{offset}" in purpose.node for purpose in found.purposes)


def test_an_adder_that_looks_one_column_down_carries_mc1_and_not_the_state():
    found = dissected(built_adder(3, reach=1, format="signed"), parts=["subtasks"]).subtasks
    carried = {p.digit: p.variable for p in found.purposes if p.heads == [1]}
    assert carried == {"A3": "MC1(2)", "A2": "MC1(1)", "A1": "MC1(0)"}
    assert found.missing == ["A3: MC1(1)", "A2: MC1(0)"]


def test_a_whole_digit_does_not_stand_for_a_column_that_is_not_read():
    """One head carries all that the adder knows, but it knows only two columns."""
    found = dissected(_one_head_adder(), parts=["subtasks"]).subtasks
    assert {p.digit: p.variable for p in found.purposes if p.heads == [0]} == {
        "A3": "MC1(2)",
        "A2": "digit(2)",
        "A1": "digit(1)",
        "A0": "BA(0)",
    }
    assert found.missing == ["A3: MC1(1)", "A2: MC1(0)"]


def _one_head_adder(digits: int = 3) -> Transformer:
    """Both heads of the adder of reach 1 in one, which weighs its own column ten times."""
    model = built_adder(digits, reach=1)
    layout, attn = model.config.layout, model.blocks[0].attn
    dims, nothing = Dims(layout, heads=2), digits
    with torch.no_grad():
        attn.W_Q[0] = 0
        for k in range(digits + 1):
            row = dims.position[layout.position_names.index(f"A{k}") - 1]
            own, below = (k, 10.0) if k < digits else (nothing, 20.0), (k - 1, 1.0)
            for column, weight in (own, below if k else (nothing, 2.0)):
                attn.W_Q[0, row, column] = (SCORE + log(weight)) * sqrt(model.config.d_head)
        attn.W_O[0] *= 1.1
        attn.W_O[1] = 0
    return model


def test_an_adder_that_looks_three_columns_down_is_seen_to(adder):
    found = dissected(built_adder(4, reach=3), parts=["attention", "subtasks"])
    assert {"P9.L0.H3": "MC1(1)", "P9.L0.H2": "state(2)"}.items() <= purposes(found).items()
    assert [found.attention.reach(k) for k in (4, 3, 2, 1, 0)] == [3, 3, 2, 1, 0]


def test_heads_that_split_a_task_pass_only_together():
    """Two heads, each with half of what head 1 of the built adder writes."""
    adder = built_adder()
    config = ModelConfig(
        digits=5, heads=4, d_model=4 * adder.config.d_head, d_mlp=adder.config.d_mlp
    )
    split = _split_head_1(adder, config)
    found = dissected(split, parts=["attention", "subtasks"])
    carried = {p.node: p.variable for p in found.subtasks.purposes}
    assert carried["P13.L0.H1+H3"] == "state(2)"
    assert "P13.L0.H1" not in carried
    assert found.subtasks.purpose_of("P13.L0.H3") == "A3.state(2) with H1"
    assert found.attention.heads[1].role == found.attention.heads[3].role == "one below"


def _split_head_1(adder, config) -> Transformer:
    """The same weights in a wider model, with head 1 twice and each copy at half strength."""
    wide, width = Transformer(config), adder.config.d_model
    scale = (width / config.d_model) ** 0.5
    with torch.no_grad():
        for name, weight in adder.state_dict().items():
            target = wide.state_dict()[name]
            if ".attn." in name and weight.shape[0] == 3:
                weight = torch.cat([weight, weight[1:2]])  # noqa: PLW2901
                if name.endswith("W_O"):
                    weight[[1, 3]] /= 2
            target[tuple(slice(size) for size in weight.shape)] = weight
        wide.blocks[0].ln1.w.copy_(torch.full((config.d_model,), float(adder.blocks[0].ln1.w[0])))
        wide.blocks[0].ln1.w.mul_(scale)
    return wide


def test_the_staircase_of_the_adder_is_seen_as_built(adder):
    attention = adder.attention
    assert attention.staircase == "present"
    assert [head.role for head in attention.heads] == ["own column", "one below", "two below"]
    assert all(head.rows == head.of for head in attention.heads)
    reading = next(r for r in attention.readings if r.head == 1 and r.answer == "A3")
    assert reading.tokens == {"D2": 0.5, "D'2": 0.5}
    assert reading.column == 2


def test_what_the_heads_read_is_said_of_heads_in_any_order(adder, permuted):
    assert adder.attention.statement.startswith(
        "To write a digit, H0 reads the digit's own column (100% of its attention), H1 reads the "
        "column one below"
    )
    assert "H0 reads the column two below" in permuted.attention.statement


def test_without_a_head_only_the_questions_that_need_it_fail():
    samples, rows = Samples(5, 0), tuple(range(18))
    engine = Engine(built_adder(), samples.varied)
    changes = [UNCHANGED, *(Ablate("blocks.0.attn.hook_z", rows, (head,)) for head in range(3))]
    right = {
        (kind.label, head): float(correct.mean())
        for kind, questions in samples.by_class.items()
        for head, correct in zip(
            (None, 0, 1, 2), engine.answers(questions, changes).correct, strict=True
        )
    }
    assert right["BA", None] == right["UC1", None] == right["simple US9", None] == 1.0
    assert right["cascade US9", None] == 0.0
    assert right["BA", 1] == right["BA", 2] == 1.0
    assert right["UC1", 1] == 0.0
    assert right["UC1", 2] == 1.0
    assert right["simple US9", 2] == 0.0


def test_the_node_maps_show_what_each_node_is_for(adder):
    effects = {effect.node: effect for effect in adder.nodes.nodes}
    assert set(effects["P13.L0.H0"].digits) == {"A3"}
    assert effects["P13.L0.H0"].fails.estimate > 0.8
    idle = [node for node, effect in effects.items() if not effect.useful]
    assert idle == ["P11.L0.H0", "P15.L0.H2", "P16.L0.H1", "P16.L0.H2"]


def test_edges_that_matter_are_those_to_the_columns_that_are_read(adder):
    used = {e.token for e in adder.edges.edges if e.answer == "A3" and e.flipped.count}
    assert used == {"D3", "D'3", "D2", "D'2", "D1", "D'1"}
    assert len(adder.edges.untrained) == len(adder.edges.edges)
    assert "In an untrained model of the same shape it is" in adder.edges.statement


def test_the_60_keys_are_all_that_the_adder_looks_at(adder):
    assert [test.keys for test in adder.mlp.digits] == [6, 60, 60, 60, 20, 10]
    assert [test.needed for test in adder.mlp.digits] == [162, 540, 180, 60, 20, 10]
    for test in adder.mlp.digits:
        assert test.decided
        assert test.kept.count == test.kept.of > 1000
        assert test.follows.count == test.follows.of > 1000


def test_beyond_the_key_the_adder_assumes_that_no_carry_arrives(adder):
    """Of digits that must change, the quiet ones follow, and those with a carry do not."""
    for test in adder.mlp.digits[:3]:
        assert 0.4 < test.beyond.estimate < 0.7
    assert [test.beyond.of for test in adder.mlp.digits[3:]] == [0, 0, 0]


def test_the_key_has_as_many_columns_as_the_heads_read():
    found = dissected(built_adder(5, reach=3), parts=["mlp"]).mlp
    assert [test.reach for test in found.digits] == [3, 3, 3, 2, 1, 0]
    assert [test.keys for test in found.digits] == [18, 180, 180, 60, 20, 10]
    assert all(test.decided for test in found.digits)
    assert "decide A5 to A0: 468 keys in all. Exact addition needs 972." in found.statement


def test_the_adders_mlp_keeps_the_answer_and_forgets_the_key(adder):
    assert [test.alike for test in adder.mlp.digits] == [6, 150, 150, 150, 10, 0]
    assert [test.apart_out for test in adder.mlp.digits] == [0, 0, 0, 0, 0, 0]


def test_the_adder_looks_two_columns_below_each_digit(adder):
    assert [adder.attention.reach(k) for k in range(6)] == [0, 1, 2, 2, 2, 2]


def test_in_an_untrained_model_nothing_is_found(untrained):
    assert untrained.subtasks.purposes == []
    assert untrained.attention.staircase == "absent"
    assert untrained.attention.statement.startswith("There is no staircase")
    assert all(test.follows.estimate < 0.5 for test in untrained.mlp.digits)
    assert [untrained.attention.reach(k) for k in range(6)] == [0] * 6


@pytest.mark.parametrize(
    "seeds", [range(6), pytest.param(range(6, 20), marks=pytest.mark.slow)], ids=["6", "14 more"]
)
def test_no_purpose_is_assigned_in_20_untrained_models(seeds, record_property):
    """The false-positive rate of the search: 0 of some 3,800 tests."""
    tests = found = 0
    for seed in seeds:
        model = initialise(
            Transformer(ModelConfig(d_model=24)), torch.Generator().manual_seed(seed)
        )
        samples = Samples(5, seed)
        engine = Engine(model, samples.varied)
        finding = study_subtasks(engine, samples)
        tests, found = tests + finding.tests, found + len(finding.purposes)
        assert study_attention(engine, samples).staircase == "absent"
    record_property("tests", tests)
    assert tests > 100 * len(seeds)
    assert found == 0


def test_one_digit_has_no_staircase_whatever_the_heads_do():
    for seed in range(10):
        draws = torch.Generator().manual_seed(seed)
        model = initialise(Transformer(ModelConfig(digits=1, d_model=48)), draws)
        samples = Samples(1, seed)
        assert study_attention(Engine(model, samples.varied), samples).staircase == "absent"
