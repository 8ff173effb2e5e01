import os
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from hooked import answers_by_hooks

import carryscope
from benchmarks import peer
from benchmarks.node_maps import check_same, peer_turn
from benchmarks.other_side import Reply, leave_work, peer_process
from carryscope.core.errors import WorkError
from carryscope.dissection.engine import Engine
from carryscope.dissection.interventions import all_nodes
from carryscope.dissection.samples import Samples

PEER = Path(
    os.environ.get("CARRYSCOPE_PEER", Path(__file__).parents[2] / ".venv-tl" / "bin" / "python")
)


class LikeTransformerLens:
    """Our instrumented pass, called as TransformerLens is."""

    def __init__(self, model):
        self.model = model

    def run_with_cache(self, tokens, names_filter):
        return self.model.run_with_cache(tokens, names_filter)

    def run_with_hooks(self, tokens, fwd_hooks):
        return self.model.run_with_hooks(
            tokens,
            [(site, lambda value, at, f=hook: f(value.clone(), at)) for site, hook in fwd_hooks],
        )


@pytest.fixture(scope="module")
def model():
    return carryscope.load().model()


@pytest.fixture(scope="module")
def questions():
    """A few questions by the rule of the paper."""
    return Samples(5, 0).varied[-16:]


@pytest.fixture(scope="module")
def maps(model, questions):
    """Which questions are right with every node in place, and without each of them."""
    engine = Engine(model, questions)
    changes = [node.ablated() for node in all_nodes(model.config)]
    return engine.answers(questions).correct[0], engine.answers(questions, changes).correct


@pytest.fixture(scope="module")
def ask(model, questions, tmp_path_factory):
    """The script that runs with TransformerLens, in this process and without it."""
    directory = tmp_path_factory.mktemp("work")
    leave_work(model, questions, directory)
    work = torch.load(directory / peer.WORK_FILE, weights_only=True)
    ablated = peer.ablated_nodes(LikeTransformerLens(model), work)
    return lambda line: msgspec.json.decode(
        peer.reply_to(line, {"node": ablated}.__getitem__), type=Reply
    )


def all_maps(ask, batch):
    """The maps of all nodes by a peer, one turn each."""
    theirs = np.zeros((24, 16), dtype=bool)
    turn = peer_turn(ask, batch, theirs)
    assert all(turn() > 0 for _ in range(24))
    return theirs


def test_the_maps_are_those_of_one_plain_pass_per_node(model, questions, maps):
    rows = model.config.layout.encode(questions)[:, -6:]
    plain = [
        answers_by_hooks(model, questions, [node.ablated()], questions).argmax(-1)
        for node in all_nodes(model.config)
    ]
    right = np.stack([(predicted.numpy() == rows).all(1) for predicted in plain])
    clean, ours = maps
    np.testing.assert_array_equal(clean & ~ours, clean & ~right)
    counts = (clean & ~ours).sum(1)
    assert counts.min() == 0
    assert counts.max() > 8


@pytest.mark.parametrize("batch", [16, 7])
def test_the_peer_finds_what_the_engine_finds(maps, ask, batch):
    np.testing.assert_array_equal(all_maps(ask, batch), maps[1])


def test_times_of_maps_that_differ_are_not_compared(maps, ask):
    clean, ours, theirs = maps[0], maps[1].copy(), all_maps(ask, 16)
    kept = np.flatnonzero(clean & ours[2])
    ours[2, kept[:2]] = False  # as many as ties might explain
    check_same("one batch", clean, ours, theirs)
    ours[2, kept[2]] = False
    with pytest.raises(WorkError, match="TransformerLens with one batch"):
        check_same("one batch", clean, ours, theirs)


@pytest.mark.slow
@pytest.mark.skipif(not PEER.exists(), reason="no TransformerLens venv; `make test-slow` makes it")
def test_a_real_transformer_lens_finds_what_the_engine_finds(model, questions, maps):
    with peer_process(PEER, model, questions) as ask:
        check_same("one batch", *maps, all_maps(ask, 16))
        assert ask("step 2").seconds > 0
