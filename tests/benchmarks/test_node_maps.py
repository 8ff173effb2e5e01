import os
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import peer_nodes
from benchmarks.node_maps import (
    SINGLES,
    NodeMaps,
    PeerMaps,
    batches,
    check_same,
    failing,
    node_map_rows,
    singles,
)
from benchmarks.speed import peer_process
from carryscope.core.errors import WorkError
from carryscope.dissection.hooks import answers_by_hooks
from carryscope.dissection.samples import Samples
from carryscope.stages import Run

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
    return NodeMaps(Run().model(), Samples(5, 0).varied[-16:])


@pytest.fixture(scope="module")
def ask(maps, tmp_path_factory):
    """The script that runs with TransformerLens, in this process and without it."""
    directory = tmp_path_factory.mktemp("work")
    maps.leave_work(directory)
    work = torch.load(directory / peer_nodes.WORK_FILE, weights_only=True)
    with torch.no_grad():
        one_pass = peer_nodes.make_pass(LikeTransformerLens(maps.model), work)
    return torch.no_grad()(lambda line: peer_nodes.reply_to(line, one_pass))


def test_the_maps_are_those_of_one_plain_pass_per_node(maps):
    rows = maps.model.config.layout.encode(maps.questions)[:, -6:]
    plain = [
        answers_by_hooks(maps.model, maps.questions, [node.ablated()], maps.questions).argmax(-1)
        for node in maps.nodes
    ]
    right = np.stack([(said.numpy() == rows).all(1) for said in plain])
    everywhere = np.ones_like(right)
    counts = failing(maps.clean(), maps.right(), everywhere)
    assert counts == failing(maps.clean(), right, everywhere)
    assert 0 in counts
    assert max(counts) > 8


@pytest.mark.parametrize("size", [16, 7])
def test_batches_by_the_peer_find_what_the_engine_finds(maps, ask, size):
    theirs = PeerMaps(ask, batches(24, 16, size), (24, 16))
    assert theirs.take_turns(24) > 0
    assert theirs.asked.all()
    np.testing.assert_array_equal(theirs.right, maps.right())
    check_same("batches", maps.clean(), maps.right(), theirs)


def test_single_questions_by_the_peer_find_what_the_engine_finds(maps, ask):
    theirs = PeerMaps(ask, singles(24, 16, np.random.default_rng(0)), (24, 16))
    theirs.take_turns(3)
    assert 2 * SINGLES < theirs.asked.sum() <= 3 * SINGLES
    np.testing.assert_array_equal(theirs.right[theirs.asked], maps.right()[theirs.asked])


def test_times_of_maps_that_differ_are_not_compared(maps, ask):
    theirs = PeerMaps(ask, batches(24, 16, 16), (24, 16))
    theirs.take_turns(24)
    clean, ours = maps.clean(), maps.right()
    kept = np.flatnonzero(clean & ours[2])
    ours[2, kept[:2]] = False  # as many as ties might explain
    check_same("one batch", clean, ours, theirs)
    ours[2, kept[2]] = False
    with pytest.raises(WorkError, match="with one batch are not ours"):
        check_same("one batch", clean, ours, theirs)


def test_a_round_of_batches_asks_every_question_of_every_node_once():
    asked = np.zeros((4, 10), dtype=int)
    for passes in islice(batches(4, 10, 3), 4):
        for node, first, last in passes:
            asked[node, first:last] += 1
    assert (asked == 1).all()


def always(seconds):
    """A peer for which a pass takes so long, whatever it is."""

    def ask(line):
        passes = peer_nodes.json.loads(line)
        right = [[True] * (last - first) for _, first, last in passes]
        return peer_nodes.json.dumps({"seconds": seconds * len(passes), "right": right})

    return ask


def test_a_sample_of_passes_is_scaled_up_to_all_of_them():
    one_by_one = PeerMaps(always(0.005), singles(24, 1000, np.random.default_rng(0)), (24, 1000))
    per_turn = one_by_one.take_turns(4) / 4
    assert per_turn == pytest.approx(SINGLES * 0.005)
    assert one_by_one.seconds_for_all(per_turn) == pytest.approx(24_000 * 0.005)
    batched = PeerMaps(always(1.5), batches(24, 1000, 500), (24, 1000))
    assert batched.seconds_for_all(batched.take_turns(1)) == pytest.approx(48 * 1.5)


def test_the_rows_are_ratios_with_targets_and_seconds_without():
    rows = node_map_rows(24, {"one pass per question": 110.0, "batches of 125": 19.0}, 1.0)
    assert [(row.value, row.target, row.met) for row in rows] == [
        (110.0, "at least 100", True),
        (19.0, "at least 20", False),
        (1.0, None, None),
        (110.0, None, None),
        (19.0, None, None),
    ]
    assert "reckoned from 288 passes" in rows[3].name


@pytest.mark.slow
@pytest.mark.skipif(not PEER.exists(), reason="no TransformerLens venv; `make test-slow` makes it")
def test_a_real_transformer_lens_finds_what_the_engine_finds(maps, tmp_path):
    maps.leave_work(tmp_path)
    with peer_process(PEER, peer_nodes.__file__, 1, tmp_path) as ask:
        theirs = PeerMaps(ask, batches(24, 16, 16), (24, 16))
        theirs.take_turns(24)
    check_same("one batch", maps.clean(), maps.right(), theirs)
