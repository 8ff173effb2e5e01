"""Trees of digit pairs: every split is a partition, and the levels are the given ones."""

import numpy as np
import pytest

from carryscope.certificate.trees import ColumnTree, grow_tree, levels_of
from carryscope.core.errors import CallError
from carryscope.task.operation import ADD, PAIRS

KINDS = ["own", "query", "other"]
RAW = ADD.raw.ravel()


def some_tree(levels: str = "other") -> ColumnTree:
    vectors = np.random.default_rng(0).normal(size=(100, 7))
    return grow_tree(vectors @ vectors.T, levels_of(ADD, levels))


@pytest.mark.parametrize("levels", KINDS)
def test_the_children_of_a_set_hold_each_of_its_pairs_once(levels: str) -> None:
    tree = some_tree(levels)
    for node, children in enumerate(tree.children):
        if children:
            assert (tree.members[children].sum(0) == tree.members[node]).all()


@pytest.mark.parametrize("levels", KINDS)
def test_a_tree_goes_down_to_every_single_pair(levels: str) -> None:
    tree = some_tree(levels)
    assert (tree.members[tree.sizes == 1].sum(0) == 1).all()


def test_the_first_level_is_by_state_and_for_the_query_by_the_last_digit_of_the_sum() -> None:
    own, query = some_tree("own"), some_tree("query")
    states = [set(RAW[own.members[child]].tolist()) for child in own.children[0]]
    assert states == [set(range(9)), {9}, set(range(10, 19))]
    residues = [set((RAW[query.members[child]] % 10).tolist()) for child in query.children[0]]
    assert residues == [{digit} for digit in range(10)]


def test_an_outlier_is_cut_off_first() -> None:
    place = np.zeros(100)
    place[37] = 50.0
    place[RAW <= 8] += np.linspace(0, 1, 45)
    kill = grow_tree(np.outer(place, place), levels_of(ADD, "other")).children[0][0]
    tree = grow_tree(np.outer(place, place), levels_of(ADD, "other"))
    assert RAW[37] == 10
    generate = tree.children[0][2]
    parts = [set(np.flatnonzero(tree.members[child])) for child in tree.children[generate]]
    assert {37} in parts
    assert tree.sizes[kill] == 45


def test_a_tree_with_an_overlap_or_a_gap_is_refused() -> None:
    tree = some_tree()
    stop = tree.stop.copy()
    stop[tree.children[0][0]] -= 1
    with pytest.raises(CallError, match="without gap or overlap"):
        ColumnTree(tree.order, tree.start, stop)
    with pytest.raises(CallError, match="all 100"):
        ColumnTree(np.zeros(100, dtype=int), tree.start, tree.stop)


def test_a_tree_with_a_set_that_is_its_own_only_part_is_refused() -> None:
    """Chains of such sets would have no end, and node numbers would run over."""
    tree = some_tree()
    start, stop = np.insert(tree.start, 1, 0), np.insert(tree.stop, 1, 100)
    with pytest.raises(CallError, match="two parts or more"):
        ColumnTree(tree.order, start, stop)


def test_a_tree_without_sets_is_refused() -> None:
    none = np.empty(0, dtype=np.int64)
    with pytest.raises(CallError, match="a beginning and an end"):
        ColumnTree(some_tree().order, none, none)


@pytest.mark.parametrize("odd", [np.nan, np.inf, 1e308])
def test_a_tree_grows_whatever_its_likeness_is(odd: float) -> None:
    """Sharp attention overflows; a tree must still hold every pair once."""
    likeness = np.zeros((PAIRS, PAIRS))
    likeness[::7] = odd
    with np.errstate(all="ignore"):
        tree = grow_tree(likeness, [])
    assert sorted(tree.order.tolist()) == list(range(PAIRS))
