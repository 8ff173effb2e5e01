"""What something ran on, in words: it belongs beside every time that was measured."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine() -> str:
    """Cores, processor and versions."""
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
