"""The results of a reproduction, as they are committed: claims, tables, figures, findings.

In: the runs of a reproduction. Out: a directory without weights:

    README.md            what was run, with which commands, on which machine
    claims.md, .json     every claim of the paper, judged
    tables.md            the paper's tables beside ours
    mlp-study.md, .json  the study of the MLP
    seeds/               a sweep over seeds: sweep.md, .json, .html; paper-5-seeds/ likewise
    <model>/             config, findings and small figures of each run
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

from carryscope.dissection.findings import DISSECTION_FILE
from carryscope.errors import CallError
from carryscope.model.files import CONFIG_FILE, weights_hash
from carryscope.report.catalogue import figure
from carryscope.reproduction.claims.claims import Judged
from carryscope.reproduction.claims.judging import judge_claims
from carryscope.reproduction.claims.page import claims_result, write_claims
from carryscope.reproduction.claims.tables import write_tables
from carryscope.reproduction.exam import EXAM_FILE
from carryscope.reproduction.mlp.figures import abilities, relearning
from carryscope.reproduction.mlp.finding import MlpStudy
from carryscope.reproduction.mlp.study import STUDY_FILE
from carryscope.reproduction.mlp.table import study_page
from carryscope.reproduction.plan import MLP_RECORD, MLP_STUDY, MODELS, QUICK, STUDIED, SWEEPS
from carryscope.reproduction.sweep.finding import SWEEP_FILE, Sweep
from carryscope.runs import Run
from carryscope.storage import read_json, write_bytes, write_json
from carryscope.training.presets import preset
from carryscope.training.summary import FINDING_FILE
from carryscope.verification.faithfulness import FAITHFULNESS_FILE
from carryscope.verification.risk import RISK_FILE
from carryscope.version import __version__

KEPT_FINDINGS = (FINDING_FILE, DISSECTION_FILE, RISK_FILE, FAITHFULNESS_FILE, EXAM_FILE)
"""Findings that are kept, one file each."""

KEPT_FIGURES = ("staircase", "digits", "learning", "phases", "nodes-purpose", "carries", "depth")
"""Figures that are kept, as SVG: those that the paper has, or that settle what it leaves open."""

WITHOUT_LAYOUT = -1
"""How JSON is kept: on one line, at half the size."""

COMMAND = "carryscope reproduce"


def runs_of(directory: Path) -> dict[str, Run]:
    """The models of a reproduction whose training is done, by name.

    A run that answers other questions than the model of that name is not among them.
    """
    trained = [name for name in MODELS if (directory / name / FINDING_FILE).exists()]
    runs = {name: Run(directory / name) for name in trained}
    layouts = {name: preset(name).model.layout for name in runs}
    return {name: run for name, run in runs.items() if run.config.model.layout == layouts[name]}


def write_results(directory: Path, out: Path, *, quick: bool) -> list[Judged]:
    """Write all there is by now; what a reproduction finds later replaces it."""
    runs, studied = runs_of(directory), directory / MLP_STUDY / STUDY_FILE
    study = read_json(studied, MlpStudy) if studied.exists() else None
    study = study if study and _is_of(study, runs) else None
    swept = [name for name in SWEEPS if (directory / name / SWEEP_FILE).exists()]
    sweeps = [read_json(directory / name / SWEEP_FILE, Sweep) for name in swept]
    judged = judge_claims(runs, mlp=study, sweeps=sweeps)
    write_claims(judged, out)
    write_tables(runs, out)
    for name, run in runs.items():
        _keep_run(run, out / name)
    if study is not None:
        _keep_study(study, out)
    for name in swept:
        _keep_sweep(directory / name, out / name)
    pages = {"the study of the MLP": f"{MLP_STUDY}.md"} if study else {}
    pages |= {
        f"{len(sweep.results)} seeds of {sweep.recipe.preset}": f"{name}/sweep.md"
        for name, sweep in zip(swept, sweeps, strict=True)
    }
    write_bytes(out / "README.md", _readme(runs, judged, pages, quick=quick).encode())
    return judged


def _is_of(study: MlpStudy, runs: Mapping[str, Run]) -> bool:
    """Whether the study is of the model that is there now."""
    base = runs.get(STUDIED)
    return base is not None and weights_hash(base.model()) == study.subjects[0].weights_sha256


def _keep_run(run: Run, out: Path) -> None:
    """A run's config, findings and figures; nothing of one that stood there before."""
    for made in ("findings", "figures"):
        shutil.rmtree(out / made, ignore_errors=True)
    for file in (Path(CONFIG_FILE), *KEPT_FINDINGS):
        if (run.directory / file).exists():
            record = (run.directory / file).read_bytes()
            write_bytes(out / file, msgspec.json.format(record, indent=WITHOUT_LAYOUT))
    shelf = run.shelf()
    for name in KEPT_FIGURES:
        try:
            picture = figure(name, shelf)
        except CallError:
            continue
        picture.save(out / "figures" / f"{name}.svg")


def _keep_study(study: MlpStudy, out: Path) -> None:
    """The study of the MLP: its record, its page, its figure."""
    write_json(out / MLP_RECORD, study)
    pictures = {"abilities": abilities(study), "relearning": relearning(study)}
    parts = ["# The MLP study"]
    for name, picture in pictures.items():
        file = picture.save(out / f"{MLP_STUDY}-{name}.svg")
        parts.append(f"![{picture.title}]({file.name})")
    parts.append(study_page(study))
    write_bytes(out / f"{MLP_STUDY}.md", "\n\n".join(parts).encode())


def _keep_sweep(directory: Path, out: Path) -> None:
    """A sweep's record and pages, without its runs."""
    out.mkdir(parents=True, exist_ok=True)
    for kind in ("json", "md", "html"):
        shutil.copyfile(directory / f"sweep.{kind}", out / f"sweep.{kind}")


def _readme(
    runs: Mapping[str, Run], judged: list[Judged], pages: Mapping[str, str], *, quick: bool
) -> str:
    """The page a visitor sees first."""
    parts = ["# The paper, reproduced", claims_result(judged).sentence]
    if quick:
        parts.append(
            f"**A quick run**: every training was cut to one step in {QUICK}. It shows that all "
            "of it works, and reproduces nothing."
        )
    parts.append(
        "[claims.md](claims.md) has every claim with its evidence, [tables.md](tables.md) the "
        "paper's tables beside ours"
        + "".join(f", [{file}]({file}) {what}" for what, file in pages.items())
        + "."
    )
    parts.append(_table(runs))
    made = f"{COMMAND} --quick" if quick else COMMAND
    parts.append(
        f"Made with `{made}`, carryscope {__version__}, on {machine()}. Each directory here has a "
        "run's config, findings and figures; weights are not kept, and the same command makes "
        "them again."
    )
    return "\n\n".join(parts) + "\n"


def _table(runs: Mapping[str, Run]) -> str:
    """A row for each model."""
    head = ["model", "steps", "held-out loss", "last 100 steps", "minutes of training"]
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, run in runs.items():
        found = run.training()
        losses = f"{found.held_out_loss.estimate:.4f} | {found.last_steps_loss:.4f}"
        minutes = f"{found.seconds / 60:.1f}"
        rows.append(f"| [{name}]({name}/config.json) | {found.steps:,} | {losses} | {minutes} |")
    return "\n".join(rows)


def machine() -> str:
    """What it ran on."""
    import torch

    return (
        f"{os.cpu_count()} cores ({_processor()}), Python {platform.python_version()}, "
        f"torch {torch.__version__}"
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
