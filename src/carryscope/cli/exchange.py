"""`carryscope import`, `carryscope export` and `carryscope sites`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from carryscope.cli.console import opened, print_json, print_plain
from carryscope.cli.options import AnyRun, Json, OutFile, RunName
from carryscope.cli.pages import place
from carryscope.task.operation import OperationName

if TYPE_CHECKING:
    from carryscope.run import Run


def import_(
    file: Path,
    /,
    *,
    out: Path,
    operation: OperationName | None = None,
    heads: int | None = None,
    json: Json = False,
) -> None:
    """Make a run from a TransformerLens state dict (`.pth`).

    Layers, heads, widths, digits and format follow from the shapes of its tensors, the rest from
    its name or a config.json or training_loss.json next to it. No code in the file is run.

    Parameters
    ----------
    file
        The state dict, saved with torch.save(model.state_dict(), file).
    out
        The run directory to make.
    operation
        What the model computes, if neither its name (add_d5_.., sub_.., mix_..) nor a config says.
    heads
        How many heads there are: TransformerLens 4 does not show it in the tensors.
    """
    from carryscope.api import import_model
    from carryscope.report.words import shape

    config = import_model(file, out, operation=operation, heads=heads).config
    if json:
        print_json(config)
    else:
        print_plain(f"Imported: {shape(config.model)}.\n{out}")


def export(run: RunName, /, *, out: OutFile = None, tags: bool = True, json: Json = False) -> None:
    """Write a run's weights as a state dict of a TransformerLens 2.x HookedTransformer.

    Parameters
    ----------
    tags
        Write behaviors.json next to it, what fails without each node; and features.json, what each
        node is for, if the run was dissected. Both are in the format of the paper's authors.
    """
    from carryscope.core.storage import check_place, write_json
    from carryscope.model.transformer_lens import hooked_transformer_config, write_state_dict

    chosen = opened(run)
    model = chosen.model()
    path = place(chosen, "model.pth", out)
    tagged = _tags(chosen, path) if tags else {}
    for file in tagged:
        check_place(file)
    write_state_dict(model, path)
    for file, nodes in tagged.items():
        write_json(file, nodes)
    config = hooked_transformer_config(model.config)
    if json:
        print_json({"path": str(path), "config": config})
        return
    fields = ", ".join(f"{name}={value!r}" for name, value in config.items())
    print_plain(f"Load it into a model made with\n  HookedTransformerConfig({fields})")
    print_plain("\n".join(map(str, [path, *tagged])))


def _tags(run: Run, path: Path) -> dict[Path, Any]:
    """What goes into the authors' two files, next to the weights."""
    from carryscope.dissection.authors import behaviors, features
    from carryscope.stages import DISSECTION

    engine = run.engine()
    files: dict[Path, Any] = {path.with_name("behaviors.json"): behaviors(engine, engine.reference)}
    if (found := run.known(DISSECTION)) and found.subtasks:
        files[path.with_name("features.json")] = features(found)
    return files


def sites(run: AnyRun = None, /, *, json: Json = False) -> None:
    """List the places in a model that can be read or changed, with their shapes."""
    from carryscope.model.sites import site_table
    from carryscope.model.sites import sites as sites_of

    config = opened(run).config.model
    if json:
        print_json([site._asdict() for site in sites_of(config).values()])
    else:
        print_plain(site_table(config))
