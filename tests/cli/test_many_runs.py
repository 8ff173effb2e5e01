"""`carryscope compare` and `carryscope runs`: pages about many runs."""

import re
import shutil

from carryscope.cli.main import run
from carryscope.shipped import SHIPPED


def test_two_runs_are_laid_over_each_other(tmp_path, capsys):
    out = tmp_path / "page.html"
    assert run(["compare", "fast-5", "exact-5", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    page = out.read_text()
    for name in ("figure-losses", "table-failures", "figure-staircases"):
        assert f'id="{name}"' in page
    assert "proved to answer all 10,000,000,000 questions right in any float32 evaluation." in page
    assert "0.81%" in page


def test_one_run_has_nothing_to_be_compared_with(tmp_path, capsys):
    assert run(["compare", "fast-5", "--out", str(tmp_path / "page.html")]) == 2
    assert "at least two runs. Got 1." in capsys.readouterr().err


def test_an_index_opens_each_report_that_was_written(tiny_run, tmp_path, capsys):
    shutil.copytree(tiny_run, tmp_path / "a b" / "tiny")
    shutil.copytree(SHIPPED / "exact-5", tmp_path / "exact")
    (tmp_path / "a b" / "tiny" / "report.html").write_text("")
    assert run(["runs", str(tmp_path)]) == 0
    page = (tmp_path / "index.html").read_text()
    links = re.findall(r'<th scope="row"><a href="([^"]*)">(\w+)</a>', page)
    assert links == [("./a%20b/tiny/report.html", "tiny")]
    assert "Proved right in all 10,000,000,000 questions" in page
    assert run(["runs", str(tmp_path / "a b" / "tiny")]) == 2
    assert "There is no finished run in" in capsys.readouterr().err


def test_a_directory_stands_for_its_runs(tiny_run, tmp_path, capsys):
    for name in ("a", "b"):
        shutil.copytree(tiny_run, tmp_path / name)
    out = tmp_path / "compare.html"
    assert run(["compare", str(tmp_path), "--out", str(out)]) == 0
    assert "Two runs compared" in out.read_text()
    assert run(["compare", str(tmp_path / "a")]) == 2
    assert "at least two runs. Got 1." in capsys.readouterr().err
