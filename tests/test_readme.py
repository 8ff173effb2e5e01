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
from rich.console import Console

from carryscope import load
from carryscope.certificate.finding import Certificate
from carryscope.cli.main import run as carryscope
from carryscope.core.storage import read_json
from carryscope.model.files import weights_hash
from carryscope.stages import SHIPPED
from paper.claims.claims import Verdict
from paper.claims.page import EARLIER
from paper.kept import Results

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
        assert capsys.readouterr().out, f"{words[0]} prints something"


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


def test_the_dissection_shown_is_the_one_that_comes_with_the_package(monkeypatch, capsys):
    from carryscope.cli import dissect

    shown = re.search(r"<!-- dissection -->\n```text\n(.*?)```", README, flags=re.DOTALL)[1]
    monkeypatch.setattr(dissect, "screen", Console(width=100, highlight=False))
    dissect.show_dissection(load().dissection())
    assert shown.split() == capsys.readouterr().out.split()[: len(shown.split())]


def _near(edge) -> bool:
    """Whether an edge leads to the digit's own column or one of the two below."""
    column = edge.token.removeprefix("D").removeprefix("'")
    return edge.token.startswith("D") and 0 <= int(edge.answer[1:]) - int(column) <= 2


def test_what_is_said_of_keys_and_edges_is_in_the_findings():
    found = load().dissection()
    tests = {test.digit: test for test in found.mlp.digits}
    alike, apart = (sum(getattr(t, n) for t in tests.values()) for n in ("alike", "apart_out"))
    assert f"of {alike} pairs of keys with the same answer, at least {apart} can" in README
    assert found.mlp.statement.startswith("The key decides A2 A1 A0; A5 stays")
    assert min(tests[f"A{k}"].kept.estimate for k in (5, 4, 3)) > 0.95
    edges = re.match(r"(\d+) of (\d+) edges", found.rows.statement).groups()
    assert f"of the {edges[1]} attention edges from answer rows, cutting {edges[0]} " in README
    near = [e for e in found.rows.edges if e.flipped.low > 0.02 and _near(e)]
    assert f"changes answers, {len(near)} of them to the digit's own column" in README
    assert found.rows.statement.endswith(f"control it is {edges[1]} of {edges[1]}.")


def test_the_verdict_shown_is_the_one_that_was_found():
    assert f"<!-- verdict -->\n> {load().risk().verdict}\n" in README
    answer = {a.name: a.answer for a in load().faithfulness().agreement.algorithms}
    one, exact = answer["Algorithm 1"], answer["exact addition"]
    assert f"the same whole answer in {one.agreement.estimate:.2%} of all questions" in README
    assert f"makes {one.also_wrong.estimate:.0%} of the model's errors" in README
    assert f"({one.same_wrong.estimate:.0%} with the same digits)" in README
    assert f"the model makes only {one.model_also_wrong.estimate:.0%}" in README
    assert f"exact addition agrees in {exact.agreement.estimate:.2%} and makes none" in README
    assert exact.also_wrong.estimate == 0.0


def test_what_is_said_of_the_reproduction_is_in_its_results():
    results = Results(ROOT / "paper" / "results")
    assert f"<!-- claims -->\n> {results.claims.sentence}\n" in README
    assert f"judges {sum(results.claims.summary.values())} claims of it" in README
    ours, papers = results.sweeps["seeds"], results.sweeps["paper-5-seeds"]
    assert f"<!-- seeds -->\n> {ours.statement}\n" in README
    assert f"<!-- paper-5 seeds -->\n> {papers.statement}\n" in README
    assert len(ours.results) == len(papers.results) == 16
    whole = [{0, 1, 2} <= {h.offset for h in s.heads if h.role} for s in papers.results]
    three, two = (
        [s.held_out_loss.estimate for s, w in zip(papers.results, whole, strict=True) if w is kind]
        for kind in (True, False)
    )
    for losses, told in ((three, "held-out loss is"), (two, "and it is")):
        assert f"{told} {min(losses):.4f} to {max(losses):.4f}" in README
    assert f"In {len(three)} the heads read three columns" in README
    assert f"in the other {len(two)}," in README
    losses = {name: results.shelf(name).training.held_out_loss for name in results.models}
    for name, loss in losses.items():
        assert f"`{name}` {loss.estimate:.4f}" in README
    longer = results.sweeps["paper-5-long-seeds"]
    assert f"<!-- paper-5-long seeds -->\n> {longer.statement}\n" in README
    assert f"--seeds 0..{len(longer.results) - 1}`" in README
    for then, now in zip(papers.results, longer.results, strict=False):
        assert then.seed == now.seed
        reads = [{h.offset for h in seed.heads if h.role} for seed in (then, now)]
        assert reads[0] == reads[1], "they keep to what they had"
    ends = [seed.held_out_loss.estimate for seed in longer.results]
    assert f"end at {min(ends):.4f} to {max(ends):.4f}" in README
    single = next(one for one in results.claims.claims if one.claim.id == "loss-10").numbers[2]
    assert f"the last 100 of `paper-10` {single.estimate:.0%} are as low" in README


def test_what_is_said_of_the_earlier_reproduction_is_in_both_results():
    results = Results(ROOT / "paper" / "results")
    both = [one for one in results.claims.claims if one.earlier not in (None, Verdict.UNMEASURED)]
    other = [one for one in both if one.earlier != one.verdict]
    assert f"of {len(both)} claims that can be judged in both" in README
    assert f"by the same rules {len(other)} come out differently" in README
    assert all("paper-5-long" in one.claim.runs for one in other)
    long = Results(results.directory / EARLIER).shelf("paper-5-long")
    assert f"and to a loss of {long.training.held_out_loss.estimate:.4f}" in README
    reads, read_earlier = (
        {head.offset for head in shelf.dissection.attention.heads if head.role}
        for shelf in (results.shelf("paper-5-long"), long)
    )
    assert 2 in read_earlier - reads


def test_what_is_said_to_be_proved_is_in_the_certificate():
    proved = read_json(ROOT / "certificates" / "fast-5.json", Certificate)
    assert f"<!-- proved -->\n> {proved.statement}\n" in README
    assert proved.weights_sha256 == weights_hash(load().model())
    wrong, measured = int(proved.proved_wrong) / int(proved.questions), load().risk().teacher_forced
    assert wrong < measured.low < measured.high < wrong + (1 - proved.decided)
    assert f"The measured risk, {100 * measured.estimate:.3f} %, lies within" in README


def test_what_is_said_of_the_shipped_model_is_on_its_card():
    said = re.search(r"<!-- card -->\n(.*?)\n## ", README, flags=re.DOTALL)[1]
    card = (SHIPPED / "README.md").read_text().splitlines()
    numbers = [line for line in said.splitlines() if line.startswith(("- ", "| "))]
    assert len(numbers) > 6
    assert all(line in card for line in numbers)


def test_every_link_within_the_repo_leads_somewhere():
    named = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")]
    folders = [ROOT / name for name in ("docs", "paper/results", "certificates")]
    for text in (*named, *(page for folder in folders for page in folder.rglob("*.md"))):
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
