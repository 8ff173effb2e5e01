"""The user guide does what it says: its commands and its Python run, in its order, as written."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "guide.md"
BLOCKS = re.findall(r"```(bash|python)\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)


def run(command: list[str], where: Path) -> str:
    """What a command prints, if it ends well."""
    ended = subprocess.run(command, cwd=where, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, f"{shlex.join(command)}: {ended.stderr}"
    return ended.stdout


def test_every_block_runs_in_one_directory(tmp_path):
    scores = ""
    for kind, body in BLOCKS:
        file = re.match(r"# (\w+\.py)\n", body)
        if kind == "bash":
            for line in body.strip().splitlines():
                name, *words = shlex.split(line)
                assert name == "carryscope"
                assert run([sys.executable, "-m", "carryscope", *words], tmp_path)
        elif file:
            (tmp_path / file[1]).write_text(body)
        else:
            scores += run([sys.executable, "-W", "error", "-c", body], tmp_path)
    lows, highs = zip(*re.findall(r"\((\d+)% to (\d+)%\)", scores), strict=True)
    assert len(lows) == 3
    assert int(lows[0]) > max(map(int, highs[1:])), "the hypothesis beats both of its controls"
    assert (tmp_path / "runs" / "tour" / "report.html").exists()
    assert len(list((tmp_path / "figures").glob("*.pdf"))) == 2
