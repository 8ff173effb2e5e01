"""`import carryscope as cs` gives what a notebook needs, and loads it when it is used."""

import subprocess
import sys

import pytest

import carryscope as cs


@pytest.mark.parametrize("name", cs.__all__)
def test_every_public_name_can_be_used(name):
    assert getattr(cs, name) is not None
    assert name in dir(cs)


def test_a_name_that_does_not_exist_lists_those_that_do():
    with pytest.raises(AttributeError, match=r"has no 'lode'. It has: .*load"):
        cs.lode  # noqa: B018


def test_a_shipped_model_is_loaded_by_name_and_a_directory_by_path(tmp_path, monkeypatch):
    assert cs.load("fast-5").name == cs.load().name == "fast-5"
    assert cs.load(cs.load().directory).weights_sha256 == cs.load().weights_sha256
    monkeypatch.chdir(tmp_path)
    cs.train("fast-5", "tiny", steps=2, d_model=24, threads=1)
    assert cs.load("fast-5").config.model.digits == 2, "a directory of that name comes first"
    with pytest.raises(cs.CallError, match="No run at fast-6"):
        cs.load("fast-6")


def test_a_head_can_be_taken_away_in_one_call():
    run = cs.load()
    assert run.ask("23816+15327").correct
    assert not run.ask("23816+15327", without="H1").correct


def test_the_explorer_shows_itself_in_a_notebook_and_can_be_saved(tmp_path):
    page = cs.load().explorer()
    assert page.save(tmp_path / "explorer.html") == (tmp_path / "explorer.html").stat().st_size
    shown = page._repr_html_()
    assert shown.startswith("<iframe")
    assert "<script" not in shown.replace("&lt;script", "")


@pytest.mark.parametrize("of", ["run", "answer", "risk", "dissection", "training", "faithfulness"])
def test_what_a_notebook_shows_is_short_and_says_it_in_html(of):
    run = cs.load()
    shown = {"run": lambda: run, "answer": lambda: run.ask("445+555")}.get(
        of, getattr(run, of, 0)
    )()
    html = shown._repr_html_()
    assert html.startswith("<")
    assert len(html) < 100_000
    assert len(repr(shown)) < 500


BLOCKED = """
import os, sys
for name in ("fcntl", "resource"):
    sys.modules[name] = None
for name in ("fork", "forkpty", "sched_getaffinity"):
    if hasattr(os, name):
        delattr(os, name)
import carryscope as cs
run = cs.train("run", "tiny", steps=3, d_model=24, threads=1)
print(run.ask("1+1").truth)
"""


def test_it_works_without_what_only_posix_has(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", BLOCKED], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "002\n"
