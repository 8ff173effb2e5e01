"""The results of a reproduction, as they are committed: claims, tables, figures, findings.

In: the runs of a reproduction. Out: a directory without weights:

    README.md            what was run, with which commands, on which machine
    claims.md, .json     every claim of the paper, judged
    tables.md            the paper's tables beside ours
    figures.md           the paper's figures beside ours
    mlp-study.md, .json  the study of the MLP
    seeds/               a sweep over seeds: sweep.md, .json, .html; others likewise
    <model>/             config, findings and figures of each run
    earlier/             findings of an earlier reproduction, if any: its verdicts are told too
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from carryscope.core.errors import CallError
from carryscope.core.machine import machine
from carryscope.core.storage import read_json, write_bytes, write_json
from carryscope.dissection.findings import DISSECTION_FILE
from carryscope.model.files import weights_hash
from carryscope.model.run_files import CONFIG_FILE, WEIGHTS_FILE
from carryscope.report.markdown import link, table
from carryscope.stages import Run
from carryscope.sweep.finding import SWEEP_FILE, Sweep, resummarised
from carryscope.sweep.page import write_pages
from carryscope.training.checkpoint import METRICS_FILE
from carryscope.training.presets import preset
from carryscope.training.summary import FINDING_FILE
from carryscope.verification.faithfulness import FAITHFULNESS_FILE
from carryscope.verification.risk import RISK_FILE
from carryscope.version import __version__
from paper.claims.claims import Judged
from paper.claims.figures import write_figures
from paper.claims.judging import judge, study_of
from paper.claims.page import (
    CLAIMS_RESULT,
    EARLIER,
    claims_result,
    read_claims,
    write_claims,
)
from paper.claims.reading import Study
from paper.claims.tables import write_tables
from paper.exam import EXAM_FILE
from paper.kept import Results
from paper.mlp.figures import abilities, relearning
from paper.mlp.finding import MlpStudy, told_anew
from paper.mlp.study import STUDY_FILE
from paper.mlp.table import study_page
from paper.plan import MLP_RECORD, MLP_STUDY, MODELS, QUICK, STUDIED, SWEEPS

KEPT_FINDINGS = {
    "training": FINDING_FILE,
    "dissection": DISSECTION_FILE,
    "risk": RISK_FILE,
    "faithfulness": FAITHFULNESS_FILE,
}
"""Findings that are kept, one file each, by their place on the shelf of a run; the exam besides."""

MLP_PAGE, MLP_FIGURE = f"{MLP_STUDY}.md", f"{MLP_STUDY}-{{}}.svg"
MLP_FIGURES = {"abilities": abilities, "relearning": relearning}
"""The page of the study of the MLP, and the figures on it."""

WITHOUT_LAYOUT = -1
"""How JSON is kept: on one line, at half the size."""

COMMAND = "carryscope reproduce"

QUICK_NOTE = (
    f"**A quick run**: every training was cut to one step in {QUICK}. It shows that all of it "
    "works, and reproduces nothing."
)


def runs_of(directory: Path) -> dict[str, Run]:
    """The models of a reproduction whose training is done, by name.

    A run that answers other questions than the model of that name is not among them.
    """
    trained = [name for name in MODELS if (directory / name / FINDING_FILE).exists()]
    runs = {name: Run(directory / name) for name in trained}
    layouts = {name: preset(name).model.layout for name in runs}
    return {name: run for name, run in runs.items() if run.config.model.layout == layouts[name]}


def check_out(names: Sequence[str], directory: Path, out: Path, *, quick: bool) -> None:
    """Refuse a place for results that holds runs, or results that would be lost there."""
    _check_holds_no_runs(directory, out)
    if quick and _has_whole_results(out):
        raise CallError(
            f"{out} has results of whole trainings. Choose another --out for quick ones."
        )
    lost = would_be_lost(names, directory, out)
    if lost:
        raise CallError(
            f"{out} has results of {', '.join(lost)}, of which there are no runs at {directory}. "
            "Choose another --out, or leave --only away to make them all."
        )


def _check_holds_no_runs(directory: Path, out: Path) -> None:
    signs = [out / name / file for name in MODELS for file in (WEIGHTS_FILE, METRICS_FILE)]
    if out.resolve() == directory.resolve() or any(sign.exists() for sign in signs):
        raise CallError(f"{out} is where runs are. Choose another --out for the results.")


def _has_whole_results(out: Path) -> bool:
    """Whether results stand there of models that were trained by their whole recipes."""
    if not (out / CLAIMS_RESULT).exists():
        return False
    return any(not run.changes for one in read_claims(out).claims for run in one.runs)


def would_be_lost(names: Sequence[str], directory: Path, out: Path) -> list[str]:
    """What has findings among the results that the runs lack, and these names would not bring."""
    files = [*KEPT_FINDINGS.values(), EXAM_FILE]
    lost = [
        name
        for name in MODELS
        if any((out / name / f).exists() and not (directory / name / f).exists() for f in files)
    ]
    if (out / MLP_RECORD).exists() and _study(directory) is None:
        lost.append(MLP_STUDY)
    return [name for name in lost if name not in names]


def write_results(directory: Path, out: Path, *, quick: bool) -> list[Judged]:
    """Write all there is by now; what a reproduction finds later replaces it."""
    _check_holds_no_runs(directory, out)
    runs, study, sweeps = runs_of(directory), _study(directory), _sweeps(directory, out)
    studies = {name: study_of(name, run) for name, run in runs.items()}
    judged = _beside_earlier(judge(studies, mlp=study, sweeps=[*sweeps.values()]), out, sweeps)
    shelves, note = {name: one.shelf for name, one in studies.items()}, QUICK_NOTE if quick else ""
    _clear(out)
    write_claims(judged, out)
    write_tables(shelves, out, note=note)
    write_figures(shelves, out, note=note)
    for name, run in runs.items():
        _keep_run(run, studies[name], out / name)
    if study is not None:
        _keep_study(study, out, note=note)
    for name, sweep in sweeps.items():
        write_pages(sweep, out / name)
        write_json(out / name / SWEEP_FILE, sweep)
    write_bytes(out / "README.md", _readme(runs, judged, study, sweeps, quick=quick).encode())
    return judged


def _clear(out: Path) -> None:
    """Remove what this module writes, so that nothing of an older reproduction stays behind."""
    for name in MODELS:
        for made in ("findings", "figures"):
            shutil.rmtree(out / name / made, ignore_errors=True)
        (out / name / CONFIG_FILE).unlink(missing_ok=True)
    for file in (MLP_RECORD, MLP_PAGE, *(MLP_FIGURE.format(name) for name in MLP_FIGURES)):
        (out / file).unlink(missing_ok=True)


def _beside_earlier(judged: list[Judged], out: Path, sweeps: Mapping[str, Sweep]) -> list[Judged]:
    """The claims with the verdicts of an earlier reproduction, if one is kept.

    Seeds are those of now, so of claims that rest on them alone nothing is said.
    """
    if not (out / EARLIER).exists():
        return judged
    earlier = Results(out / EARLIER).verdicts([*sweeps.values()])
    return [
        msgspec.structs.replace(one, earlier=earlier[one.claim.id]) if one.claim.runs else one
        for one in judged
    ]


def _study(directory: Path) -> MlpStudy | None:
    """The study of the MLP, if there is one, and of the model that is there now."""
    path = directory / MLP_STUDY / STUDY_FILE
    study = read_json(path, MlpStudy) if path.exists() else None
    return told_anew(study) if study and _is_of(study, runs_of(directory)) else None


def _sweeps(directory: Path, out: Path) -> dict[str, Sweep]:
    """The sweeps that stand among the runs or the results, those with more seeds, told anew."""
    found: dict[str, Sweep] = {}
    for name in SWEEPS:
        files = [place / name / SWEEP_FILE for place in (directory, out)]
        sweeps = [read_json(file, Sweep) for file in files if file.exists()]
        if sweeps:
            found[name] = resummarised(max(sweeps, key=lambda sweep: len(sweep.results)))
    return found


def _is_of(study: MlpStudy, runs: Mapping[str, Run]) -> bool:
    """Whether the study is of the model that is there now."""
    base = runs.get(STUDIED)
    return base is not None and weights_hash(base.model()) == study.subjects[0].weights_sha256


def _keep_run(run: Run, study: Study, out: Path) -> None:
    """A run's config, and those of its findings that are of its weights."""
    shelf = study.shelf
    there = [file for place, file in KEPT_FINDINGS.items() if getattr(shelf, place) is not None]
    there += [EXAM_FILE] if study.known_exam else []
    for file in (Path(CONFIG_FILE), *there):
        record = (run.directory / file).read_bytes()
        write_bytes(out / file, msgspec.json.format(record, indent=WITHOUT_LAYOUT))


def _keep_study(study: MlpStudy, out: Path, *, note: str) -> None:
    """The study of the MLP: its record, its page, its figures."""
    write_json(out / MLP_RECORD, study)
    parts = ["# The MLP study", *filter(None, [note])]
    for name, draw in MLP_FIGURES.items():
        picture = draw(study)
        file = picture.save(out / MLP_FIGURE.format(name))
        parts.append(f"![{picture.title}]({file.name})")
    parts.append(study_page(study))
    write_bytes(out / MLP_PAGE, "\n\n".join(parts).encode())


def _readme(
    runs: Mapping[str, Run],
    judged: list[Judged],
    study: MlpStudy | None,
    sweeps: Mapping[str, Sweep],
    *,
    quick: bool,
) -> str:
    """The page a visitor sees first."""
    pages = {"the study of the MLP": MLP_PAGE} if study else {}
    for name, sweep in sweeps.items():
        pages[f"{len(sweep.results)} seeds of {sweep.recipe.preset}"] = f"{name}/sweep.md"
    parts = ["# The paper, reproduced", claims_result(judged).sentence]
    parts += [QUICK_NOTE] if quick else []
    parts.append(
        "[claims.md](claims.md) has every claim with its evidence, [tables.md](tables.md) and "
        "[figures.md](figures.md) the paper's tables and figures beside ours"
        + "".join(f", [{file}]({file}) {what}" for what, file in pages.items())
        + "."
    )
    parts.append(_table(runs))
    made = f"{COMMAND} --quick" if quick else COMMAND
    parts.append(
        f"Made with `{made}`, carryscope {__version__}, on {machine()}; the sweeps over seeds by "
        "commands of their own, which stand at the end of each. Every model's directory has its "
        "config, findings and figures; weights are not kept, and the same command makes them again."
    )
    return "\n\n".join(parts) + "\n"


def _table(runs: Mapping[str, Run]) -> str:
    """A row for each model."""
    head = ["model", "steps", "held-out loss", "last 100 steps", "minutes of training"]
    rows = []
    for name, run in runs.items():
        found = run.training()
        losses = [f"{found.held_out_loss.estimate:.4f}", f"{found.last_steps_loss:.4f}"]
        named, minutes = link(name, f"{name}/config.json"), f"{found.seconds / 60:.1f}"
        rows.append([named, f"{found.steps:,}", *losses, minutes])
    return table(head, rows)
