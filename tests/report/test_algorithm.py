"""The sentences are the findings' statements, and claim nothing without them."""

import dataclasses

import msgspec
import pytest
from report.shelves import replaced, shipped_shelf, untrained_shelf

from carryscope.report.parts import Sentences
from carryscope.report.sections.how import algorithm_sentences, algorithm_title, how_section
from carryscope.report.shelf import Shelf


def sentences(shelf: Shelf) -> list[str]:
    return algorithm_sentences(shelf.dissection, shelf.risk)


def told(shelf: Shelf, **parts) -> list[str]:
    dissection = replaced(shelf.dissection, **parts)
    return algorithm_sentences(dissection, shelf.risk)


def test_the_shipped_model_gets_four_sentences():
    reads, carries, combines, ends = sentences(shipped_shelf())
    assert "H0 reads the digit's own column" in reads
    assert "H2 reads the column two below" in reads
    assert carries == (
        "For most digits H0 carries the base sum of the digit's own column, H1 carries whether the "
        "column one below makes a carry, passes one on or neither, H2 carries whether the column "
        "two below makes a carry and MLP carries the finished digit."
    )
    assert combines.startswith("The columns that the heads read decide A5, A3, A2, A1 and A0")
    assert ends == (
        "It fails at A4 and A3 once two nines lie below, at A5 once three nines lie below. The "
        "worst, A5 above four nines without a carry, is wrong in 67% of such questions."
    )


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
    reads, carries, combines, ends = sentences(shelf)
    assert reads.startswith("There is no staircase")
    assert carries == "No part of the model was found to carry any sub-task."
    assert combines.startswith("The columns that the heads read decide no digit")
    assert ends.startswith("It does not add")
    part = next(p for p in how_section(shelf).parts if isinstance(p, Sentences))
    assert part.title == "No algorithm was found"


@pytest.mark.parametrize("part", ["attention", "subtasks", "mlp"])
def test_what_was_not_studied_is_left_out(part):
    assert len(told(shipped_shelf(), **{part: None})) == 3


def test_a_model_without_an_mlp_is_said_to_have_none():
    found = shipped_shelf().dissection
    bare = replaced(found, mlp=None, model=replaced(found.model, d_mlp=0))
    assert algorithm_sentences(bare)[-1].startswith("There is no MLP")


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


def test_parts_that_carry_something_together_only_are_told_by_the_whole_statement():
    shelf = shipped_shelf()
    together = [one for one in shelf.dissection.subtasks.purposes if len(one.heads) > 1]
    subtasks = msgspec.structs.replace(shelf.dissection.subtasks, purposes=together)
    assert together
    assert subtasks.statement in told(shelf, subtasks=subtasks)
