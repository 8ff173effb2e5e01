"""The recipes: each a model shape and a training, with a sentence on what it is for.

In: the name of a preset, or a trained run to start from, and the fields to change. Out: the
`RunConfig` of a training.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from carryscope.core.errors import CallError
from carryscope.core.storage import read_json
from carryscope.model.config import ModelConfig, paper_width
from carryscope.model.files import CONFIG_FILE, load_model, weights_hash
from carryscope.task.operation import OPERATIONS, OperationName
from carryscope.task.strata import cascades
from carryscope.training.config import RunConfig, TrainingConfig, differences


class Preset(NamedTuple):
    """A named recipe."""

    about: str
    minutes: float
    """An estimate, not a measurement: minutes of training on two idle cores."""
    model: ModelConfig
    training: TrainingConfig


PAPER = TrainingConfig(stream="authors")

FAST = TrainingConfig(
    seed=0,
    steps=1800,
    final_batch=192,
    learning_rate=5e-4,
    embedding_rate=0.16,
    warmup=60,
    schedule="linear",
    clip=1.0,
    init_std=0.02,
    embedding_std=0.05,
    attention_std=0.01,
    head_delay=120,
    sharpness=0.1,
    sharpness_start=0.1,
    nines=0.6,
    nines_start=0.16,
)
"""For the paper's shape. The sharpness costs a few answers, and in return a minute of certificate
decides most questions, not none."""

EXACT = TrainingConfig(
    seed=0,
    steps=9000,
    batch=128,
    final_batch=384,
    learning_rate=2e-3,
    weight_decay=0.01,
    warmup=100,
    schedule="linear",
    clip=1.0,
    init_std=0.05,
    embedding_std=0.2,
    attention_std=0.01,
    head_delay=400,
    sharpness=0.02,
    nines=1.0,
    near_nines=0.7,
    paper_tail=0.0,
)
"""For one head per column, which can see every column that decides a carry. With less between two
starts, two heads may settle on one column. The sharpness makes proofs short."""

CLIMBING = replace(EXACT, final_batch=256, head_delay=300, sharpness_start=0.4, hard_start=0.5)
"""For more digits. Their last errors are too rare to be met by chance, so from half of the steps on
questions climb towards them."""

DEEP = replace(EXACT, steps=4500, head_delay=150, sharpness=0.0, paper_tail=0.15)
"""For several layers. They need no head for each column: a lower layer computes the states of
columns at question tokens, and a later one fetches them. Without the paper's mix of questions at
the end, a few sums in a million without any nines fail."""


def _signed(operation: OperationName, **shape: int) -> ModelConfig:
    return ModelConfig(operation=operation, format="signed", vocabulary=15, **shape)


PRESETS: Mapping[str, Preset] = {
    "fast-5": Preset(
        "Our recipe, the default: the paper's 5-digit model, trained in a minute or two.",
        2,
        ModelConfig(),
        FAST,
    ),
    "exact-3": Preset(
        "Three digits and three heads, meant to answer every question right.",
        0.5,
        ModelConfig(digits=3, heads=3, d_model=150, d_mlp=320),
        replace(EXACT, seed=1, steps=4000),
    ),
    "exact-5": Preset(
        "Five digits and five heads, one per column, meant to answer every question right.",
        3,
        ModelConfig(heads=5, d_model=160, d_mlp=192),
        EXACT,
    ),
    "exact-7": Preset(
        "Seven digits and eight heads, meant to answer every question right.",
        8,
        ModelConfig(digits=7, heads=8, d_model=160, d_mlp=320),
        replace(CLIMBING, steps=16_000, patterns=cascades(7, 3)),
    ),
    "exact-10": Preset(
        "Ten digits and twelve heads. Of its first seed, one answer in 100,000 is wrong.",
        20,
        ModelConfig(digits=10, heads=12, d_model=240, d_mlp=512),
        replace(CLIMBING, steps=20_000, head_delay=100, coverage=0.3, patterns=cascades(10, 3)),
    ),
    "deep-5": Preset(
        "Two layers of three heads, which hand states of columns from layer to layer.",
        3,
        ModelConfig(layers=2, heads=3, d_model=96, d_mlp=256),
        DEEP,
    ),
    "mix-5-deep": Preset(
        "Addition and subtraction of five digits: three layers of four heads.",
        5,
        _signed("mixed", layers=3, heads=4, d_model=96, d_mlp=256),
        replace(DEEP, steps=5000, differences=0.6, hard_start=0.5),
    ),
    "sub-3": Preset(
        "Subtraction of three digits: six heads, meant to answer every question right.",
        1,
        _signed("subtraction", digits=3, heads=6, d_model=96, d_mlp=192),
        replace(EXACT, steps=6000, final_batch=256, head_delay=200),
    ),
    "sub-5": Preset(
        "Subtraction of five digits: ten heads, meant to answer nearly every question right.",
        3,
        _signed("subtraction", heads=10, d_model=120, d_mlp=256),
        replace(EXACT, steps=8000, final_batch=256, head_delay=250),
    ),
    "mix-5": Preset(
        "Addition and subtraction of five digits in one model, two thirds of it differences.",
        5,
        _signed("mixed", heads=12, d_model=120, d_head=10, d_mlp=320),
        replace(EXACT, final_batch=256, head_delay=200, differences=0.667),
    ),
    "paper-5": Preset(
        "The paper's main model, and its authors' own draw: 5 digits, 3 heads, 5,000 steps.",
        3,
        ModelConfig(),
        PAPER,
    ),
    "paper-5-heads-2": Preset(
        "The paper's recipe with 2 heads; it says that they pack several tasks into one.",
        3,
        ModelConfig(heads=2),
        PAPER,
    ),
    "paper-5-heads-4": Preset(
        "The paper's recipe with 4 heads; it says that two of them split a task.",
        3,
        ModelConfig(heads=4),
        PAPER,
    ),
    "paper-10": Preset("The paper's recipe for 10 digits.", 4, ModelConfig(digits=10), PAPER),
    "paper-15": Preset("The paper's recipe for 15 digits.", 7, ModelConfig(digits=15), PAPER),
    "reuse-5": Preset(
        "The paper's Algorithm Reuse model, by the recipe of its authors' later library: signed "
        "answers, a long warm-up and a cosine, more nines, 15,000 steps.",
        8,
        ModelConfig(format="signed", vocabulary=15),
        TrainingConfig(
            seed=372001,
            steps=15_000,
            warmup=3_000,
            schedule="cosine",
            enriched_batches=0.4,
            enriched_cells=0.4,
        ),
    ),
    "tiny": Preset(
        "Two digits, one small layer, a few seconds: for demos and tests.",
        0.2,
        ModelConfig(digits=2, heads=2, d_model=96),
        replace(
            FAST,
            steps=800,
            batch=128,
            final_batch=0,
            nines_start=0.0,
            attention_std=0.0,
            head_delay=0,
            sharpness=0.0,
            learning_rate=3e-3,
            embedding_rate=1.0,
            init_std=0.06,
            embedding_std=0.2,
        ),
    ),
}

DEFAULT_PRESET = "fast-5"


def preset(name: str) -> Preset:
    """The preset of this name."""
    if name not in PRESETS:
        raise CallError(f"preset must be one of {', '.join(PRESETS)}. Got '{name}'.")
    return PRESETS[name]


def run_config(name: str, overrides: Mapping[str, Any]) -> RunConfig:
    """A preset with some fields of its model or its training replaced."""
    chosen = preset(name)
    config = RunConfig(preset=name, model=chosen.model, training=chosen.training)
    return changed(config, overrides)


def started_config(run: Path, overrides: Mapping[str, Any], recipe: str | None = None) -> RunConfig:
    """The config of a training that starts from the weights of another run.

    It has that run's recipe, or another preset's, with some fields replaced; and its model, which
    can grow (`growing.py`).
    """
    from carryscope.training.growing import check_growth, new_parts  # with torch

    weights = weights_hash(load_model(run))
    found = read_json(run / CONFIG_FILE, RunConfig)
    training = found.training if recipe is None else preset(recipe).training
    if training is None:
        raise CallError(f"The model at {run} was imported and has no recipe. Name one: --preset P.")
    start = RunConfig(
        preset=recipe or found.preset,
        source=run.resolve().name,
        model=found.model,
        training=replace(training, start_weights=weights, renew=(), freeze=()),
    )
    widths = {name: getattr(found.model, name) for name in ("d_model", "d_head", "d_mlp")}
    config = changed(start, widths | dict(overrides))
    check_growth(found.model, config.model)
    return replace(config, new_parts=new_parts(found.model, config.model))


def changes(config: RunConfig) -> list[str]:
    """How a run differs from its preset, its seed apart; empty for a recipe of its own."""
    if config.preset is None or config.preset not in PRESETS:
        return []
    asked = run_config(config.preset, {"seed": config.training.seed if config.training else 0})
    return [text.partition(", asked for ")[0] for text in differences(asked, config)]


def changed(config: RunConfig, overrides: Mapping[str, Any]) -> RunConfig:
    """A config with some fields of its model or its training replaced.

    Widths that follow the paper's rule still follow it when heads or d_model change, and the
    tokens follow the operation.
    """
    assert config.training is not None
    model, training = _taken(config.model, overrides), _taken(config.training, overrides)
    unknown = set(overrides) - set(model) - set(training)
    if unknown:
        raise CallError(f"There is no setting '{min(unknown)}' in a recipe.")
    if OPERATIONS[model.get("operation", config.model.operation)].signed:
        model = {"format": "signed", "vocabulary": 15} | model
    if config.model.d_model == paper_width(config.model.heads):
        model = {"d_model": 0} | model
    if config.model.d_model == config.model.heads * config.model.d_head:
        model = {"d_head": 0} | model
    if config.model.d_mlp == 4 * config.model.d_model:
        model = {"d_mlp": -1} | model
    return replace(
        config, model=replace(config.model, **model), training=replace(config.training, **training)
    )


def _taken(config: Any, overrides: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in overrides.items() if name in config.__struct_fields__}
