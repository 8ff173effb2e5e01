"""What the paper says beside a measured number."""

from __future__ import annotations

from carryscope.core.words import percent
from carryscope.model.config import ModelConfig
from carryscope.report.paper import paper_value


def paper_text(name: str, model: ModelConfig) -> str:
    """The paper's value of something with where it stands, or nothing."""
    value = paper_value(name, model)
    return f"{value.text} ({value.where})" if value else ""


def paper_cell(name: str, model: ModelConfig) -> str:
    """The paper's value alone, for a table whose caption says where it stands."""
    value = paper_value(name, model)
    return value.text if value else ""


def paper_share(name: str, model: ModelConfig) -> str:
    """The same for a share, in per cent as ours."""
    value = paper_value(name, model)
    return percent(float(value.value)) if value else ""
