"""The user guide does what it says: its commands and its Python run, in its order, as written."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

from carryscope.cli.main import run

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "guide.md"
BLOCKS = re.findall(r"```(bash|python)\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)


def test_every_block_runs_in_one_directory(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
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
            python = [sys.executable, "-W", "error", "-c", body]
            scores += subprocess.run(python, check=True, capture_output=True, text=True).stdout
    lows, highs = zip(*re.findall(r"\((\d+)% to (\d+)%\)", scores), strict=True)
    assert len(lows) == 3
    assert int(lows[0]) > max(map(int, highs[1:])), "the hypothesis beats both of its controls"
    assert (tmp_path / "runs" / "tour" / "report.html").exists()
    assert len(list((tmp_path / "figures").glob("*.pdf"))) == 2
