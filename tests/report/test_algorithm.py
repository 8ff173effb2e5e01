"""The five sentences follow from the findings, change with them, and claim nothing without."""

import dataclasses

import pytest
from report.shelves import replaced, shipped_shelf, untrained_shelf

from carryscope.core.evidence import Share
from carryscope.report.parts import Sentences
from carryscope.report.sections.how import algorithm_sentences, algorithm_title, how_section
from carryscope.report.shelf import Shelf


def sentences(shelf: Shelf) -> list[str]:
    return algorithm_sentences(shelf.dissection, shelf.risk)


def told(shelf: Shelf, **parts) -> list[str]:
    dissection = replaced(shelf.dissection, **parts)
    return algorithm_sentences(dissection, shelf.risk)


def test_the_shipped_model_gets_five_sentences():
    reads, carries, combines, follows, ends = sentences(shipped_shelf())
    assert "H0 reads the digit's own column" in reads
    assert "H2 reads the column two below" in reads
    assert "H0 mostly carries the base sum (BA) of the digit's own column, for A4 to A0" in carries
    assert "whether the column one below makes a carry, passes one on or neither" in carries
    assert "whether the column two below makes a carry (MC1), for A4 and A2" in carries
    assert "the digit becomes that key's digit in 9" in combines
    assert "through two nines by A5 and through one nine by A4 and A3" in follows
    assert "A4 uses the digit just written" in follows
    assert ends == (
        "It fails once two nines lie below: the worst digit, A5 above four nines without a carry, "
        "is wrong in 67% of such questions."
    )


def test_heads_that_change_places_change_the_first_sentence():
    shelf = shipped_shelf()
    heads = [replaced(h, offset=2 - h.offset) for h in shelf.dissection.attention.heads]
    before = sentences(shelf)
    after = told(shelf, attention=replaced(shelf.dissection.attention, heads=heads))
    assert "H0 reads the column two below" in after[0]
    assert "H2 reads the digit's own column" in after[0]
    assert before[1:] == after[1:]


def test_a_head_without_a_staircase_is_named_as_such():
    shelf = shipped_shelf()
    attention = shelf.dissection.attention
    heads = [replaced(h, role=None) if h.head == 1 else h for h in attention.heads]
    first = told(shelf, attention=replaced(attention, heads=heads))[0]
    assert "H1 reads" not in first
    assert "No single column gets the attention of H1." in first


def test_purposes_that_are_not_found_are_left_out():
    shelf = shipped_shelf()
    subtasks = shelf.dissection.subtasks
    without = [p for p in subtasks.purposes if p.kind != "BA"]
    sentence = told(shelf, subtasks=replaced(subtasks, purposes=without))[1]
    assert "base sum" not in sentence
    nothing = told(shelf, subtasks=replaced(subtasks, purposes=[]))[1]
    assert nothing == "No head was found to carry any sub-task of addition."


def test_swaps_that_do_not_follow_their_key_turn_the_third_sentence_around():
    shelf = shipped_shelf()
    mlp = shelf.dissection.mlp
    digits = [replaced(test, follows=Share.measured(1, 100)) for test in mlp.digits]
    sentence = told(shelf, mlp=replaced(mlp, digits=digits))[2]
    assert sentence.startswith("The MLP does not look its answer up by the paper's keys")
    assert "follows in only 1.0% of swaps" in sentence


def test_a_deeper_reach_and_a_blind_one_change_the_fourth_sentence():
    shelf = shipped_shelf()
    first = shelf.dissection.first_digits
    deep = [replaced(rule, reach=4, reads_token=False) for rule in first.rules]
    assert (
        "through three nines by A5, A4 and A3"
        in told(shelf, first_digits=replaced(first, rules=deep))[3]
    )
    blind = [replaced(rule, reach=0, reads_token=False) for rule in first.rules]
    assert "No carry is followed" in told(shelf, first_digits=replaced(first, rules=blind))[3]


def test_a_model_that_is_never_wrong_is_not_said_to_end_anywhere():
    shelf = shipped_shelf()
    cases = [
        replaced(case, wrong=type(case.wrong)(0.0, 0.0, 0.001 * (1 + case.depth)))
        for case in shelf.risk.cases
    ]
    safe = dataclasses.replace(shelf, risk=replaced(shelf.risk, cases=cases))
    assert sentences(safe)[-1].startswith("No look-ahead was found unsafe")


def test_of_an_untrained_model_nothing_is_claimed():
    shelf = untrained_shelf()
    reads, carries, combines, follows, ends = sentences(shelf)
    assert reads.startswith("There is no staircase")
    assert carries == "No head was found to carry any sub-task of addition."
    assert combines.startswith("The MLP does not look its answer up")
    assert follows.startswith("No carry is followed")
    assert ends.startswith("It does not add")
    part = next(p for p in how_section(shelf).parts if isinstance(p, Sentences))
    assert part.title == "No algorithm was found"


@pytest.mark.parametrize("part", ["attention", "subtasks", "mlp", "first_digits"])
def test_what_was_not_studied_is_left_out(part):
    assert len(told(shipped_shelf(), **{part: None})) == 4


def test_an_algorithm_is_called_one_only_if_heads_and_their_work_were_found():
    found = shipped_shelf().dissection
    assert algorithm_title(found) == "The algorithm"
    assert algorithm_title(replaced(found, subtasks=None)) == "What is known so far"
    nothing = replaced(found.subtasks, purposes=[])
    assert algorithm_title(replaced(found, subtasks=nothing)) == "No algorithm was found"


def test_with_no_findings_at_all_there_are_no_sentences():
    bare = dataclasses.replace(shipped_shelf(), dissection=None, risk=None)
    assert sentences(bare) == []
    assert not any(isinstance(part, Sentences) for part in how_section(bare).parts)
