"""The README does what it says: its commands and its Python run, its output is printed.

`make study` and `make test` are only looked up here: CI runs the second, and a test inside it
cannot. What `make study` does is tested as `carryscope study`.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from carryscope import load
from carryscope.certificate.certify import ProofSearch
from carryscope.certificate.finding import Certificate
from carryscope.certificate.proof import RIGHT
from carryscope.cli.main import run as carryscope
from carryscope.core.storage import read_json
from carryscope.stages import CERTIFICATE
from paper.claims import judge
from paper.page import sentence
from paper.plan import STUDY

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(bash|python)\n(.*?)```", README, flags=re.DOTALL)
COMMANDS = [line for kind, body in BLOCKS if kind == "bash" for line in body.strip().splitlines()]
PYTHON = [body for kind, body in BLOCKS if kind == "python"]
MAKE = [line for line in COMMANDS if line.startswith("make ")]


def carryscope_commands() -> list[list[str]]:
    """What is given to carryscope, word by word."""
    called = [shlex.split(line) for line in COMMANDS if "carryscope" in line.split()[0]]
    return [words[1:] for words in called]


def run(command: list[str], where: Path) -> str:
    """What a command prints, if it ends well."""
    ended = subprocess.run(command, cwd=where, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_every_line_of_every_block_is_one_of_the_kinds_tested_here():
    assert len(MAKE) + len(carryscope_commands()) == len(COMMANDS)
    assert MAKE == ["make study", "make test"]


@pytest.mark.parametrize("line", MAKE)
def test_make_knows_the_targets(line):
    planned = run([*line.split(), "--dry-run", "--always-make"], ROOT)
    assert {"make study": "carryscope study", "make test": "pytest"}[line] in planned


def test_the_commands_run_one_after_the_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for words in carryscope_commands():
        assert carryscope(words) == 0, capsys.readouterr().err
        printed = capsys.readouterr().out
        assert printed, f"{words[0]} prints something"
    assert words == ["certify", "exact-5", "--check"]
    exact = load("exact-5")
    proofs = ProofSearch(exact.model(), exact.there(CERTIFICATE)).proofs
    claims = sum(len(proof.leaves(RIGHT)) for proof in proofs)
    assert f"torch decided all {claims:,} boxes again." in printed, "the whole proof, every time"


@pytest.mark.parametrize("code", PYTHON)
def test_the_python_runs(code, tmp_path):
    printed = run([sys.executable, "-W", "error", "-c", code], tmp_path)
    assert len(printed.splitlines()) >= code.count("\nprint(")


def test_the_answer_shown_is_the_answer_given():
    shown = re.search(r"<!-- output -->\n```text\n(.*?)```", README, flags=re.DOTALL)[1]
    command = [sys.executable, "-m", "carryscope", "ask", "445+555"]
    environment = {**os.environ, "COLUMNS": "100"}
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)

    def words(text: str) -> list[str]:
        """Without layout, and without percentages: another machine may round those otherwise."""
        return re.sub(r"[\d.]+%", "%", text).split()

    assert words(shown) == words(printed.stdout)


def test_the_verdict_shown_is_the_one_that_was_found():
    assert f"<!-- verdict -->\n> {load().risk().verdict}\n" in README


def test_what_is_said_to_be_proved_is_in_the_certificate():
    proved = read_json(load().directory / "findings" / "certificate.json", Certificate)
    assert (
        f"<!-- proved -->\n> {proved.statement}\n" in (ROOT / "docs" / "certificate.md").read_text()
    )
    wrong, measured = int(proved.proved_wrong) / int(proved.questions), load().risk().teacher_forced
    assert measured.low < wrong + (1 - proved.decided)
    assert wrong < measured.high, "what is measured and what is proved agree"


def test_what_is_said_of_the_exact_adder_is_in_its_certificate():
    run = load("exact-5")
    proved = read_json(run.directory / "findings" / "certificate.json", Certificate)
    assert f"<!-- exact -->\n> {proved.statement}\n" in README
    assert proved.weights_sha256 == run.weights_sha256


def test_what_is_said_of_the_reproduction_is_in_its_results():
    records = STUDY.read()
    assert f"<!-- claims -->\n> {sentence(judge(records))}\n" in README
    own = next(record for record in records if (record.recipe, record.seed) == ("paper-5", 129000))
    assert own.heads == ["own column", "one below", "two below"]
    assert "authors' own draw (their weights, their batches) reads three columns" in README


def test_the_scoreboard_is_taken_from_the_speed_table():
    speed = (ROOT / "docs" / "speed.md").read_text()
    board = README.split("## Speed")[1].split("\n## ")[0]
    rows = [line for line in board.splitlines() if line.startswith("| ") and "---" not in line]
    assert len(rows) > 2
    assert all(row in speed for row in rows)


def test_the_readme_is_short():
    assert len(README.split()) <= 1020


def test_every_link_within_the_repo_leads_somewhere():
    named = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")]
    folders = [ROOT / name for name in ("docs", "paper")]
    for text in (
        *named,
        *(
            page
            for folder in folders
            for page in folder.rglob("*.md")
            if page.parent.name != "pages"
        ),
    ):
        for target, place in re.findall(r"\]\((?!http)([^)#]*)(?:#([^)]+))?\)", text.read_text()):
            page = text.parent / target if target else text
            assert page.exists(), f"{text.name} links to {target}"
            assert not place or place in places(page), f"{text.name} links to {target}#{place}"


def places(page):
    """The places on a page that a link can lead to: its headings, and names given to them."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)">', text))
