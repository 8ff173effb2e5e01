"""Models whose certificates are tested: untrained ones, and the shipped one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from untrained import untrained

import carryscope
from carryscope.certificate.certify import certify
from carryscope.certificate.features import Features
from carryscope.certificate.finding import Certificate
from carryscope.model.config import ModelConfig
from carryscope.model.files import load_model
from carryscope.model.transformer import Transformer


@pytest.fixture(scope="package")
def shipped() -> Transformer:
    return load_model(Path(carryscope.__file__).parent / "shipped" / "fast-5")


@pytest.fixture(scope="package")
def shipped_features(shipped: Transformer) -> tuple[Features, Features]:
    """Its tables in float32 and in float64."""
    return Features.of(shipped), Features.of(shipped, torch.float64)


@pytest.fixture(scope="package")
def two_digits() -> tuple[Transformer, Certificate]:
    """A small untrained model, and a certificate of a good part of its questions."""
    model = untrained(ModelConfig(digits=2, heads=2, d_model=24))
    return model, certify(model, until=0.6)
