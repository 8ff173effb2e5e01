"""Paths between layers: on a two-layer adder whose circuit is known, and on models with none."""

import pytest
import torch
from built_cascade import built_cascade

from carryscope.core.errors import CallError
from carryscope.dissection.ablations import study_edges
from carryscope.dissection.attention import study_attention
from carryscope.dissection.engine import Engine
from carryscope.dissection.interventions import Node, Route
from carryscope.dissection.paths import study_paths
from carryscope.dissection.samples import Samples
from carryscope.model.prediction import answer

DIGITS = 3


@pytest.fixture(scope="module")
def found():
    model, samples = built_cascade(DIGITS), Samples(DIGITS, 0)
    return study_paths(Engine(model, samples.varied), samples)


@pytest.mark.parametrize("digits", [3, 5])
def test_the_built_cascade_is_right_on_every_question_asked(digits):
    questions = Samples(digits, 0).nines_rich("exact", 3000)
    assert answer(built_cascade(digits), questions, free_running=False).correct.all()


def test_each_state_is_fetched_from_its_column_by_the_head_that_reads_it(found):
    fetched = {(p.token, p.digit): p for p in found.paths if p.fetched}
    assert set(fetched) == {(f"D'{c}", f"A{k}") for k in range(1, DIGITS + 1) for c in range(k)}
    for (token, digit), path in fetched.items():
        column = int(token[2:])
        assert path.variable == (f"state({column})" if column else "MC1(0)"), digit
        assert path.follows.estimate == 1.0
        assert path.senders["MLP"].estimate == 1.0
        assert path.senders["H0"].estimate == path.senders["H1"].estimate == 0.0
        assert (path.readers["H0"].estimate, path.readers["H1"].estimate) == (1.0, 0.0)
        assert (path.into["value"].estimate, path.into["key"].estimate) == (1.0, 0.0)


def test_the_raw_sum_stays_in_its_row_and_the_state_is_made_by_the_mlp_below(found):
    own = {(p.layer, p.reader, p.digit): p.variable for p in found.paths if not p.fetched}
    for k in range(DIGITS):
        assert own[0, f"P{3 * DIGITS + 1 - k}.L1.MLP", f"A{k}"] == f"BA({k})"
    assert own[0, f"P{2 * DIGITS - 1}.L0.MLP", "A3"] == "state(1)"


def test_the_cascade_is_said_in_words(found):
    assert [fetch.cascade for fetch in found.carries] == [True] * (DIGITS - 1) + [False]
    assert all(fetch.follows.estimate == 1.0 for fetch in found.carries)
    assert "D'2 computes whether column 2 makes a carry, passes one on" in found.statement
    assert "combined for A3 and A2: a tri-state cascade" in found.statement


def test_attention_and_edges_at_question_rows_are_those_that_were_built(monkeypatch):
    monkeypatch.setattr("carryscope.dissection.ablations.EDGE_QUESTIONS", 128)
    samples = Samples(DIGITS, 0)
    engine = Engine(built_cascade(DIGITS), samples.varied)
    read = {
        one.answer: one.column
        for one in study_attention(engine, samples).question_readings
        if (one.layer, one.head) == (0, 0) and one.column is not None
    }
    assert {f"at D'{c}": c for c in range(DIGITS)}.items() <= read.items()
    edges = study_edges(engine, samples).edges
    used = {(e.answer, e.token) for e in edges if e.used and e.answer.startswith("at")}
    columns = range(DIGITS)
    assert used == {(f"at D'{c}", token) for c in columns for token in (f"D{c}", f"D'{c}")}


@pytest.mark.parametrize("seed", [0, 1])
def test_an_untrained_model_has_no_paths(random_model, seed):
    samples = Samples(2, seed)
    model = random_model(digits=2, layers=2, seed=seed)
    found = study_paths(Engine(model, samples.varied), samples)
    assert found.paths == []
    assert not any(fetch.cascade for fetch in found.carries)
    assert found.statement.startswith("No later layer was found to fetch")


def routed_by_hooks(model, route, base, other):
    """Path patching in two passes of the instrumented model: the reader first, then its output."""
    row, layer, heads = route.receiver
    tokens, theirs = (torch.from_numpy(model.config.layout.encode(q)) for q in (base, other))
    clean, source = model.run_with_cache(tokens)[1], model.run_with_cache(theirs)[1]
    added = torch.zeros_like(clean["hook_embed"])
    for node in route.senders:
        block = model.blocks[node.layer]
        if node.heads:
            site = f"blocks.{node.layer}.attn.hook_z"
            change = (source[site] - clean[site])[:, node.row, list(node.heads)]
            wrote = torch.einsum("bhe,hed->bd", change, block.attn.W_O[list(node.heads)])
        else:
            site = f"blocks.{node.layer}.hook_mlp_out"
            wrote = (source[site] - clean[site])[:, node.row]
        added[:, node.row] += wrote
    if not heads:
        hook = [(f"blocks.{layer}.hook_resid_mid", lambda value, site: value + added)]
        written = {}
        model.run_with_hooks(
            tokens,
            [*hook, (f"blocks.{layer}.hook_mlp_out", lambda v, site: written.update(out=v))],
        )

        def put(value, site):
            return torch.cat(
                [value[:, :row], written["out"][:, row : row + 1], value[:, row + 1 :]], 1
            )

        return model.run_with_hooks(tokens, [(f"blocks.{layer}.hook_mlp_out", put)])
    block = model.blocks[layer]
    stream = clean[f"blocks.{layer}.hook_resid_pre"] + added
    normal = block.ln1(stream, lambda name, value: value)
    letters = {"query": "q", "key": "k", "value": "v"}
    seen = {}
    hooks = []
    for name in route.into:
        W, b = (getattr(block.attn, f"{kind}_{letters[name].upper()}") for kind in "Wb")
        new = torch.einsum("brd,hde->brhe", normal, W) + b
        hooks.append((f"blocks.{layer}.attn.hook_{letters[name]}", lambda v, site, new=new: new))
    keep = (f"blocks.{layer}.attn.hook_z", lambda value, site: seen.update(z=value))
    model.run_with_hooks(tokens, [*hooks, keep])

    def put_heads(value, site):
        value = value.clone()
        value[:, row, list(heads)] = seen["z"][:, row, list(heads)]
        return value

    return model.run_with_hooks(tokens, [(f"blocks.{layer}.attn.hook_z", put_heads)])


@pytest.mark.parametrize(
    ("senders", "receiver", "into"),
    [
        ((Node(3, 0, (0,)),), Node(6, 1, (0, 1)), ("key", "value")),
        ((Node(3, 0),), Node(6, 1, (1,)), ("value",)),
        ((Node(3, 0), Node(4, 0, (0, 1))), Node(7, 2, (0,)), ("key",)),
        ((Node(6, 1, (1,)), Node(6, 0)), Node(6, 2, (0, 1)), ("query", "key", "value")),
        ((Node(6, 0, (0, 1)),), Node(6, 2), ()),
        ((Node(4, 0, (1,)),), Node(4, 0), ()),
        ((Node(7, 2, (0,)),), Node(7, 2), ()),
    ],
)
def test_a_route_is_what_two_passes_with_hooks_give(random_model, senders, receiver, into):
    model = random_model(digits=2, layers=3, heads=2, d_model=24)
    samples = Samples(2, 0)
    base, other = (samples.nines_rich(name, 20) for name in ("a", "b"))
    route, engine = Route(senders, receiver, other, into), Engine(model, samples.varied)
    with torch.no_grad():
        expected = routed_by_hooks(model, route, base, other)
    rows = model.config.layout.answer_rows
    got = engine.reading(model.config.layout.encode(base), route)[0]
    torch.testing.assert_close(got, expected[:, rows.start : rows.stop], atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("sender", "receiver"),
    [
        (Node(5, 1, (0,)), Node(5, 0, (0,))),
        (Node(6, 0, (0,)), Node(5, 1, (0,))),
        (Node(4, 0), Node(5, 1)),
        (Node(5, 0), Node(5, 0)),
        (Node(5, 0, (7,)), Node(5, 1)),
    ],
)
def test_a_route_that_does_not_exist_is_refused(random_model, sender, receiver):
    model, samples = random_model(digits=2, layers=2), Samples(2, 0)
    questions = samples.nines_rich("a", 5)
    with pytest.raises(CallError, match="does not read"):
        Engine(model, samples.varied).answers(questions, [Route((sender,), receiver, questions)])
