"""The results of a reproduction, as they are committed: claims, tables, figures, findings.

In: the runs of a reproduction. Out: a directory without weights:

    README.md            what was run, with which command, on which machine
    claims.md, .json     every claim of the paper, judged
    tables.md            the paper's tables and ours
    figures.md           the paper's figures and ours
    mlp-study.md, .json  the study of the MLP
    seeds/               a sweep over seeds: sweep.md, .json, .html; others likewise
    <model>/             config, findings and figures of each run
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from carryscope.core.errors import CallError
from carryscope.core.machine import machine
from carryscope.core.storage import read_json, write_bytes, write_json
from carryscope.model.files import CONFIG_FILE, WEIGHTS_FILE
from carryscope.report.markdown import link, table
from carryscope.run import Run
from carryscope.stages import DISSECTION, FAITHFULNESS, RISK, TRAINING, Stage
from carryscope.sweeps.finding import SWEEP_FILE, Sweep, resummarised
from carryscope.sweeps.page import write_pages as sweep_pages
from carryscope.training.loop import is_finished
from paper.claims.figures import FIGURES_PAGE, figures_markdown
from paper.claims.judging import judge
from paper.claims.page import (
    CLAIMS_PAGE,
    CLAIMS_RESULT,
    ClaimsResult,
    claims_markdown,
    claims_result,
)
from paper.claims.reading import study_of
from paper.claims.tables import TABLES_PAGE, tables_markdown
from paper.exam import EXAM
from paper.mlp.figures import abilities, relearning
from paper.mlp.finding import MlpStudy, retold
from paper.mlp.study import STUDY_FILE
from paper.mlp.table import study_page
from paper.models import MLP_RECORD, MLP_STUDY, MODELS, QUICK, STUDIED, SWEEPS
from paper.record import Results

KEPT: tuple[Stage[Any], ...] = (TRAINING, DISSECTION, RISK, FAITHFULNESS, EXAM)
"""The findings that are kept."""

README, MLP_PAGE = "README.md", f"{MLP_STUDY}.md"
MLP_FIGURES = {f"{MLP_STUDY}-abilities.svg": abilities, f"{MLP_STUDY}-relearning.svg": relearning}

ON_ONE_LINE = -1
"""How JSON is kept: half as large as with indents."""

QUICK_NOTE = (
    f"**A quick run**: every training was cut to one step in {QUICK}. It shows that all of it "
    "works, and reproduces nothing."
)


def runs_of(directory: Path) -> dict[str, Run]:
    """The models of a reproduction whose training is done, by name."""
    return {name: Run(directory / name) for name in MODELS if is_finished(directory / name)}


def check_out(names: Sequence[str], runs: Path, out: Path) -> None:
    """Refuse a directory for results that holds runs, or results that would be lost there."""
    _check_holds_no_runs(runs, out)
    lost = would_be_lost(names, runs, out)
    if lost:
        raise CallError(
            f"{out} has results of {', '.join(lost)}, but {runs} has no such runs. "
            "Choose another --out, or leave out --only to make them all."
        )


def _check_holds_no_runs(runs: Path, out: Path) -> None:
    weights = [out / name / WEIGHTS_FILE for name in MODELS]
    if out.resolve() == runs.resolve() or any(file.exists() for file in weights):
        raise CallError(f"{out} holds runs. Choose another --out for the results.")


def would_be_lost(names: Sequence[str], runs: Path, out: Path) -> list[str]:
    """Models with findings in `out` that the runs lack and that are not about to be made."""
    files = {name: [Path(name) / stage.file for stage in KEPT] for name in MODELS}
    lost = [
        name
        for name, kept in files.items()
        if any((out / file).exists() and not (runs / file).exists() for file in kept)
    ]
    if (out / MLP_RECORD).exists() and _study(runs) is None:
        lost.append(MLP_STUDY)
    return [name for name in lost if name not in names]


def write_results(directory: Path, out: Path, *, quick: bool) -> ClaimsResult:
    """Judge all runs that are there, and write the results. Earlier results are replaced."""
    _check_holds_no_runs(directory, out)
    runs, study, sweeps = runs_of(directory), _study(directory), _sweeps(directory, out)
    studies = {name: study_of(name, run) for name, run in runs.items()}
    judged = judge(studies, mlp=study, sweeps=list(sweeps.values()))
    _clear(out)
    for name, run in runs.items():
        _keep_run(run, out / name)
    if study is not None:
        write_json(out / MLP_RECORD, study)
    for name, sweep in sweeps.items():
        write_json(out / name / SWEEP_FILE, sweep)
    result = claims_result(judged, machine=machine(), quick=quick)
    write_json(out / CLAIMS_RESULT, result)
    write_pages(Results(out))
    return result


def rewrite(results: Results) -> ClaimsResult:
    """Judge the claims again from the records, and write all pages again. No runs are needed."""
    out, known = results.directory, results.claims
    for name, sweep in results.sweeps.items():
        write_json(out / name / SWEEP_FILE, resummarised(sweep))
    if results.mlp_study is not None:
        write_json(out / MLP_RECORD, retold(results.mlp_study))
    again = claims_result(results.judged_again(), machine=known.machine, quick=known.quick)
    result = msgspec.structs.replace(again, package_version=known.package_version)
    write_json(out / CLAIMS_RESULT, result)
    write_pages(results)
    return result


def write_pages(results: Results) -> None:
    """Write all pages and figures from the records of a reproduction."""
    out, claims = results.directory, results.claims
    shelves, note = results.shelves(), QUICK_NOTE if claims.quick else ""
    pages = {
        CLAIMS_PAGE: claims_markdown(claims),
        TABLES_PAGE: tables_markdown(shelves, note=note),
        FIGURES_PAGE: figures_markdown(shelves, out, note=note),
        README: _readme(results, note=note),
    }
    if results.mlp_study is not None:
        pages[MLP_PAGE] = _mlp_markdown(results.mlp_study, out, note=note)
    for file, page in pages.items():
        write_bytes(out / file, page.encode())
    for name, sweep in results.sweeps.items():
        sweep_pages(sweep, out / name)


def _clear(out: Path) -> None:
    """Remove earlier results, so that none of them is mixed with the new ones."""
    for name in MODELS:
        shutil.rmtree(out / name, ignore_errors=True)
    for file in (MLP_RECORD, MLP_PAGE, *MLP_FIGURES):
        (out / file).unlink(missing_ok=True)


def _study(directory: Path) -> MlpStudy | None:
    """The study of the MLP, if it is there and about the weights that its base has now."""
    path, base = directory / MLP_STUDY / STUDY_FILE, directory / STUDIED
    if not path.exists() or not is_finished(base):
        return None
    study = read_json(path, MlpStudy)
    same = study.subjects[0].weights_sha256 == Run(base).weights_sha256
    return retold(study) if same else None


def _sweeps(directory: Path, out: Path) -> dict[str, Sweep]:
    """The sweeps among the runs or the results; of two of a name the one with more seeds."""
    found: dict[str, Sweep] = {}
    for name in SWEEPS:
        files = [place / name / SWEEP_FILE for place in (directory, out)]
        sweeps = [read_json(file, Sweep) for file in files if file.exists()]
        if sweeps:
            found[name] = resummarised(max(sweeps, key=lambda sweep: len(sweep.results)))
    return found


def _keep_run(run: Run, out: Path) -> None:
    """A run's config, and those of its findings that are about its weights."""
    there = [stage.file for stage in KEPT if run.read(stage).found is not None]
    for file in (Path(CONFIG_FILE), *there):
        record = (run.directory / file).read_bytes()
        write_bytes(out / file, msgspec.json.format(record, indent=ON_ONE_LINE))


def _mlp_markdown(study: MlpStudy, out: Path, *, note: str) -> str:
    """The page of the study of the MLP; its figures are drawn."""
    pictures = []
    for file, draw in MLP_FIGURES.items():
        picture = draw(study)
        picture.save(out / file)
        pictures.append(f"![{picture.title}]({file})")
    return "\n\n".join(filter(None, ["# The MLP study", note, *pictures, study_page(study)]))


def _readme(results: Results, *, note: str) -> str:
    """The page that a visitor sees first."""
    claims = results.claims
    pages = {
        CLAIMS_PAGE: "every claim with its evidence",
        TABLES_PAGE: "the paper's tables and ours",
        FIGURES_PAGE: "the paper's figures and ours",
    }
    pages |= {MLP_PAGE: "the study of the MLP"} if results.mlp_study else {}
    for name, sweep in results.sweeps.items():
        pages[f"{name}/sweep.md"] = f"{len(sweep.results)} seeds of {sweep.recipe.preset}"
    parts = [
        "# The paper, reproduced",
        claims.sentence,
        note,
        "\n".join(f"- {link(file, file)}: {what}" for file, what in pages.items()),
        _table(results),
        f"Made with `make reproduce`, carryscope {claims.package_version}, on {claims.machine}. "
        "Each sweep names its own command. A model's directory has its config, findings and "
        "figures. Weights are not kept; the same command makes them again.",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _table(results: Results) -> str:
    """A row for each model."""
    head = ["model", "steps", "held-out loss", "last 100 steps", "minutes of training"]
    rows = []
    for name, shelf in results.shelves().items():
        if (found := shelf.training) is not None:
            losses = [f"{found.held_out_loss.estimate:.4f}", f"{found.last_steps_loss:.4f}"]
            minutes = f"{found.seconds / 60:.1f}"
            rows.append([link(name, f"{name}/config.json"), f"{found.steps:,}", *losses, minutes])
    return table(head, rows)
