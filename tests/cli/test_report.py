"""`carryscope report`: where it writes, what it says, and how a bad call ends."""

import json

import pytest

from carryscope.cli.main import run
from carryscope.shipped import SHIPPED


def test_the_report_stands_in_the_run_and_its_path_is_the_last_line(tiny_run, capsys):
    assert run(["report", str(tiny_run)]) == 0
    told = capsys.readouterr()
    assert told.out == f"{tiny_run / 'report.html'}\n"
    assert (tiny_run / "report.html").read_text().startswith("<!doctype html>")


def test_a_report_can_be_written_elsewhere_and_its_path_read_by_machines(
    tiny_run, tmp_path, capsys
):
    out = tmp_path / "deep" / "mine.html"
    assert run(["report", str(tiny_run), "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"path": str(out)}
    assert out.exists()


@pytest.mark.parametrize(
    ("ending", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
)
def test_figures_are_written_for_a_paper(ending, start, tiny_run, tmp_path, capsys):
    figures = tmp_path / "figures"
    assert run(["figures", str(tiny_run), "--out", str(figures), "--format", ending]) == 0
    told = capsys.readouterr()
    written = {path.name for path in figures.iterdir()}
    names = {"digits", "learning", "phases", "exam"}
    assert written >= {f"{name}.{ending}" for name in names}
    assert (figures / f"phases.{ending}").read_bytes().startswith(start)
    assert sorted(told.out.splitlines()) == sorted(str(figures / name) for name in written)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["report", "nowhere"], 2, "No run at nowhere"),
        (["figures", "fast-5", "--out", "x", "--format", "jpg"], 2, "jpg"),
    ],
)
def test_a_wrong_call_gets_one_clear_line(arguments, code, message, capsys):
    assert run(arguments) == code
    told = capsys.readouterr().err
    assert message in told
    assert told.startswith("carryscope: ")
    assert told.count("\n") == 1


def test_an_unknown_figure_is_answered_with_those_there_are(tiny_run, tmp_path, capsys):
    assert run(["figures", str(tiny_run), "--out", str(tmp_path), "--only", "staircase"]) == 2
    told = capsys.readouterr().err
    assert "The figures are digits, learning, phases" in told
    assert "A dissection: not run. Run: " in told


def test_a_place_that_cannot_be_written_to_is_told_in_one_line(tiny_run, capsys):
    assert run(["report", str(tiny_run), "--out", "/proc/report.html"]) == 1
    assert "carryscope: Cannot write /proc/report.html" in capsys.readouterr().err


def test_a_run_that_is_still_being_trained_is_told_so(tmp_path, capsys):
    (tmp_path / "config.json").write_text((SHIPPED / "fast-5" / "config.json").read_text())
    assert run(["report", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
