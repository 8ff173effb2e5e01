"""The user guide does what it says: its commands and its Python run, in its order, as written."""

import re
import shlex
from pathlib import Path

from carryscope.cli.main import run

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "guide.md"
BLOCKS = re.findall(r"```(bash|python)\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)


def test_every_block_runs_in_one_directory(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("carryscope.core.workers.cores", lambda: 1)  # no processes beside this one
    scores = ""
    for kind, body in BLOCKS:
        file = re.match(r"# (\w+\.py)\n", body)
        if kind == "bash":
            for line in body.strip().splitlines():
                name, *words = shlex.split(line)
                assert name == "carryscope"
                assert run(words) == 0, capsys.readouterr().err
                assert capsys.readouterr().out, f"{line} prints something"
        elif file:
            (tmp_path / file[1]).write_text(body)
        else:
            exec(compile(body, str(GUIDE), "exec"), {"__name__": "__main__"})
            scores += capsys.readouterr().out
    *_, hypothesis, one, other = re.findall(r"\((\d+)% to (\d+)%\)", scores)
    assert int(hypothesis[0]) > max(int(one[1]), int(other[1])), "it beats both of its controls"
    assert (tmp_path / "runs" / "tour" / "report.html").exists()
    assert len(list((tmp_path / "figures").glob("*.pdf"))) == 2
