"""Models whose certificates are tested, and what decides their boxes."""

from __future__ import annotations

from pathlib import Path

import pytest
from untrained import untrained

import carryscope
from carryscope.certificate.certify import certify
from carryscope.certificate.finding import Certificate
from carryscope.model.config import ModelConfig
from carryscope.model.files import load_model
from carryscope.model.transformer import Transformer


@pytest.fixture(scope="package")
def shipped() -> Transformer:
    return load_model(Path(carryscope.__file__).parent / "shipped" / "fast-5")


@pytest.fixture(params=["numba", "torch"])
def engine(request: pytest.FixtureRequest) -> str:
    """What computes the bounds: all that is sound must be so with both."""
    if request.param == "numba":
        pytest.importorskip("numba")
    return str(request.param)


@pytest.fixture(scope="package")
def two_digits() -> tuple[Transformer, Certificate]:
    """A small untrained model, and a certificate of a good part of its questions."""
    model = untrained(ModelConfig(digits=2, heads=2, d_model=24))
    return model, certify(model, until=0.6)
