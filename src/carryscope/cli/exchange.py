"""`carryscope import`, `carryscope export` and `carryscope sites`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from carryscope.cli.console import print_json, print_plain


def import_(file: Path, /, *, out: Path, json: bool = False) -> None:
    """Make a run from a TransformerLens state dict (`.pth`).

    Layers, heads, widths, digits and format are read off the shapes of its tensors. The
    file is opened without running any code in it.

    Parameters
    ----------
    file
        The state dict, saved with torch.save(model.state_dict(), file).
    out
        The run directory to make.
    json
        Print the config of the new run as JSON.
    """
    from carryscope.stages import import_model

    config = import_model(file, out).config
    if json:
        print_json(config)
        return
    model = config.model
    print_plain(f"Imported: {model.digits} digits, layers {model.layers}, heads {model.heads}.")
    print_plain(out)


def export(
    run: Path, /, *, to: Literal["tl"] = "tl", out: Path | None = None, json: bool = False
) -> None:
    """Write a run's weights as a TransformerLens state dict.

    Parameters
    ----------
    run
        The run directory.
    to
        The format to write; `tl` is the state dict of a TransformerLens 2.x HookedTransformer.
    out
        The file to write. Default: model.pth in the run directory.
    json
        Print the path and the HookedTransformerConfig to load it into, as JSON.
    """
    from carryscope.model.transformer_lens import hooked_transformer_config, write_state_dict
    from carryscope.stages import Run

    model = Run(run).model()
    path = out or run / "model.pth"
    write_state_dict(model, path)
    config = hooked_transformer_config(model.config)
    if json:
        print_json({"path": str(path), "config": config})
        return
    fields = ", ".join(f"{name}={value!r}" for name, value in config.items())
    print_plain(f"Load it into a model made with\n  HookedTransformerConfig({fields})")
    print_plain(path)


def sites(run: Path | None = None, /, *, json: bool = False) -> None:
    """List the places in a model that can be read or changed, with their shapes.

    Parameters
    ----------
    run
        The run directory. Default: the shipped model.
    json
        Print the sites as JSON.
    """
    from carryscope.model.sites import site_table
    from carryscope.model.sites import sites as sites_of
    from carryscope.stages import SHIPPED, Run

    config = Run(run or SHIPPED).config.model
    if json:
        axes = {
            name: dict(zip(site.shape[1:], site.sizes, strict=True))
            for name, site in sites_of(config).items()
        }
        print_json([{"name": name, "axes": sizes} for name, sizes in axes.items()])
    else:
        print_plain(site_table(config))
