"""The same parts in a terminal, in Markdown and in a notebook: short, and never markup."""

import dataclasses
import io
import re

import pytest
from report.shelves import HOSTILE, Seen, made_hostile, replaced, shipped_shelf
from rich.console import Console

import carryscope
from carryscope.report.findings import parts_of
from carryscope.report.markdown import Markdown, link, markdown
from carryscope.report.page import fragment, notebook
from carryscope.report.parts import (
    Absent,
    Commands,
    Facts,
    Folded,
    Picture,
    Section,
    Sentences,
    Text,
)
from carryscope.report.sections.answer import answer_table
from carryscope.report.tables import Table, Wrong
from carryscope.report.terminal import show

FINDINGS = ("training", "dissection", "risk", "faithfulness", "certificate")


def printed(parts, *, width: int = 80, verbose: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    show(parts, console, verbose=verbose)
    return console.file.getvalue()


def found(name: str):
    if name == "answer":
        return carryscope.load().ask("445+555")
    return shipped_shelf() if name == "shelf" else getattr(shipped_shelf(), name)


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("name", ["answer", "shelf", *FINDINGS])
def test_every_finding_fits_a_terminal_of_80_columns(name, verbose):
    told = printed(parts_of(found(name)), verbose=verbose)
    assert max(map(len, told.splitlines())) <= 80
    assert "…" not in told, "nothing is cut off"


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("answer", "445+555 = 000000: wrong, it is 001000."),
        ("shelf", "Right in 99.19% of all questions; not safe where two columns or more"),
        ("training", "After 1,800 steps (172,736 questions) the model answers 99.2%"),
        ("dissection", "The algorithm"),
        ("certificate", "So much is proved of 10,000,000,000 questions"),
    ],
)
def test_the_claim_comes_first(name, first):
    assert printed(parts_of(found(name))).startswith(first)


def test_what_is_folded_is_shown_on_demand():
    parts = [Text("claim"), Folded("fold", [Text("deep")])]
    assert printed(parts).split() == ["claim"]
    assert printed(parts, verbose=True).split() == ["claim", "fold", "deep"]
    assert printed([Section("id", "title", "", parts)]).split() == ["title", "claim"]


def test_a_wide_table_is_split_and_each_piece_has_the_first_column():
    rows = [[f"row{i}", *("x" * 20 for _ in range(6))] for i in range(2)]
    told = printed([Table("t", "Wide", ["name", *"abcdef"], rows)])
    assert told.count("name") == told.count("row0") == 2
    assert [letter in told for letter in "abcdef"] == [True] * 6


def test_a_picture_is_shown_by_its_table():
    table = Table("t", "Instead", ["a"], [["b"]])
    assert "Instead" in printed([Picture("p", lambda: None, instead=table)])
    assert printed([Picture("p", lambda: None)]) == ""


def test_codes_are_grey_and_wrong_digits_orange():
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="256")
    show(parts_of(found("answer")), console)
    told = console.file.getvalue()
    assert re.search("\x1b\\[1;38;5;166m0", told), "the wrong digit"
    assert re.search("\x1b\\[90mUC1", told)
    assert "`" not in told


def test_many_answers_are_a_table():
    run = carryscope.load()
    told = printed([answer_table([run.ask("445+555"), run.ask("1+1")])])
    assert told.startswith("1 of 2 answers are right")
    assert re.search(r"445\+555 +000000 +001000 +wrong", told)


def test_a_study_ends_with_the_verdict_an_example_and_the_proof():
    told = " ".join(printed(parts_of(shipped_shelf())).split())
    assert told.startswith("Right in 99.19% of all questions; not safe where")
    assert "of the wrong answers are to sums in which two neighbouring columns sum to 9" in told
    assert "such as 991+9, where a carry must pass two nines. A nine is a column that" in told
    assert "So much is proved of 10,000,000,000 questions." in told


@pytest.mark.parametrize("name", FINDINGS)
def test_hostile_texts_are_text_in_a_terminal_and_in_markdown(name):
    parts = parts_of(made_hostile(getattr(shipped_shelf(), name)))
    assert "alert(1)" in printed(parts, width=400, verbose=True)
    written = markdown(parts)
    assert "alert(1)" in written
    assert "<script" not in written
    assert "<img" not in written


def test_markup_of_rich_is_text_too():
    parts = [Text("[red]a[/]"), Facts({"[b]": "[i]"}), Table("t", "[b]", ["[u]"], [["[x]"]])]
    told = printed([*parts, Commands(["run [y]"])])
    for text in ("[red]a[/]", "[b]", "[i]", "[u]", "[x]", "run [y]"):
        assert text in told


def test_markdown_has_every_kind_of_part():
    parts = [
        Text("One. Two.", lead=True),
        Text("Mind. it * is", lead=True),
        Sentences("Steps", ["a `code|` b", "c `d`"]),
        Absent("a thing", "make thing", "It broke."),
        Table("t", "Tab_le", ["a|b"], [[Wrong("x|y")], [link("here", "there.md")]], "cap"),
        Folded("Fold", [Text("deep"), Text(Markdown("**as it is**"))]),
    ]
    told = markdown(parts)
    assert told == (
        "**One.** Two.\n\n**Mind.** it \\* is\n\n**Steps** \n\n"
        "- **1.** a \\`code\\|\\` b\n- **2.** c `d`\n\n"
        "**A thing: not run.** It broke.\n\n```\nmake thing\n```\n\n"
        "## Tab\\_le\n\n| a\\|b |\n| --- |\n| x\\|y |\n| [here](there.md) |\n\ncap\n\n"
        "## Fold\n\ndeep\n\n**as it is**"
    )


@pytest.mark.parametrize("name", ["answer", "shelf", *FINDINGS])
def test_a_notebook_shows_a_short_fragment_that_runs_nothing(name):
    shown = notebook(found(name))
    assert 1_000 < len(shown) < 100_000
    seen = Seen(shown)
    assert {"script", "link", "button"}.isdisjoint(tag for tag, _ in seen.tags)
    ids = [attributes["id"] for _, attributes in seen.tags if "id" in attributes]
    assert all(re.fullmatch("f[0-9a-f]{8}_.*", name) for name in ids), "those of the figure alone"
    assert shown.count("<svg") <= 1


def test_hostile_texts_are_text_in_a_notebook():
    shelf = shipped_shelf()
    for name in ("risk", "faithfulness"):
        seen = Seen(fragment(parts_of(made_hostile(getattr(shelf, name)))))
        assert not {"script", "img"} & {tag for tag, _ in seen.tags}
        assert HOSTILE.partition("`")[0] in seen.text
    config = replaced(shelf.config, preset=HOSTILE)
    named = Seen(notebook(dataclasses.replace(shelf, config=config)))
    assert HOSTILE.partition("`")[0] in named.text
    assert not {"script", "img"} & {tag for tag, _ in named.tags}
