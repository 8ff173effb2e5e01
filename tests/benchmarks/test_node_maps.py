import os
from pathlib import Path

import numpy as np
import pytest
import torch

import carryscope
from benchmarks import peer_nodes
from benchmarks.measure import peer_process
from benchmarks.node_maps import NodeMaps, check_same, failing, node_map_rows, peer_turn
from carryscope.core.errors import WorkError
from carryscope.dissection.hooks import answers_by_hooks
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
def maps():
    """The node maps of the shipped model on a few questions by the rule of the paper."""
    return NodeMaps(carryscope.load().model(), Samples(5, 0).varied[-16:])


@pytest.fixture(scope="module")
def ask(maps, tmp_path_factory):
    """The script that runs with TransformerLens, in this process and without it."""
    directory = tmp_path_factory.mktemp("work")
    maps.leave_work(directory)
    work = torch.load(directory / peer_nodes.WORK_FILE, weights_only=True)
    with torch.no_grad():
        ablated = peer_nodes.node_maps(LikeTransformerLens(maps.model), work)
    return torch.no_grad()(lambda line: peer_nodes.reply_to(line, ablated))


def all_maps(ask, batch):
    """The maps of all nodes by a peer, one turn each."""
    theirs = np.zeros((24, 16), dtype=bool)
    turn = peer_turn(ask, batch, theirs)
    assert all(turn() > 0 for _ in range(24))
    return theirs


def test_the_maps_are_those_of_one_plain_pass_per_node(maps):
    rows = maps.model.config.layout.encode(maps.questions)[:, -6:]
    plain = [
        answers_by_hooks(maps.model, maps.questions, [node.ablated()], maps.questions).argmax(-1)
        for node in maps.nodes
    ]
    right = np.stack([(predicted.numpy() == rows).all(1) for predicted in plain])
    counts = failing(maps.clean(), maps.right())
    assert counts == failing(maps.clean(), right)
    assert 0 in counts
    assert max(counts) > 8


@pytest.mark.parametrize("batch", [16, 7])
def test_the_peer_finds_what_the_engine_finds(maps, ask, batch):
    np.testing.assert_array_equal(all_maps(ask, batch), maps.right())


def test_times_of_maps_that_differ_are_not_compared(maps, ask):
    clean, ours, theirs = maps.clean(), maps.right(), all_maps(ask, 16)
    kept = np.flatnonzero(clean & ours[2])
    ours[2, kept[:2]] = False  # as many as ties might explain
    check_same("one batch", clean, ours, theirs)
    ours[2, kept[2]] = False
    with pytest.raises(WorkError, match="TransformerLens with one batch"):
        check_same("one batch", clean, ours, theirs)


def test_the_rows_are_ratios_with_targets_and_the_seconds_of_all_maps():
    rows = node_map_rows(24, {"one batch": 1.1, "batches of 125": 0.19, "ours": 0.01})
    assert [(row.value, row.met) for row in rows] == [
        (pytest.approx(110), True),
        (pytest.approx(19), False),
        (pytest.approx(0.24), None),
    ]


@pytest.mark.slow
@pytest.mark.skipif(not PEER.exists(), reason="no TransformerLens venv; `make test-slow` makes it")
def test_a_real_transformer_lens_finds_what_the_engine_finds(maps, tmp_path):
    maps.leave_work(tmp_path)
    with peer_process(PEER, peer_nodes.__file__, 1, tmp_path) as ask:
        check_same("one batch", maps.clean(), maps.right(), all_maps(ask, 16))
