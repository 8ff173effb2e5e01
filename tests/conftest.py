"""Every array shape in every signature of the package is checked while the tests run."""

from shapes import check_shapes

check_shapes("carryscope")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402

from carryscope.model.config import ModelConfig  # noqa: E402
from carryscope.model.transformer import Transformer, initialise  # noqa: E402
from carryscope.training.data import held_out_questions  # noqa: E402

pytest_plugins = ["browser"]

torch.set_num_threads(1)  # the models of the tests are small: threads only get in each other's way


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def few_questions(monkeypatch):
    """Trainings that measure themselves on a few questions: what they say is not the point.

    Held-out questions are remembered; the few must not be what later tests are given.
    """
    monkeypatch.setattr("carryscope.training.summary.UNIFORM_QUESTIONS", 50)
    monkeypatch.setattr("carryscope.training.data.HELD_OUT_BATCHES", 2)
    held_out_questions.cache_clear()
    yield
    held_out_questions.cache_clear()


@pytest.fixture
def random_model():
    """A model with every parameter, biases too, drawn at random."""

    def make(seed: int = 0, **fields) -> Transformer:
        config = ModelConfig(**{"d_model": 24, "heads": 3, **fields})
        draws = torch.Generator().manual_seed(seed)
        model = initialise(Transformer(config), draws)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn(parameter.shape, generator=draws) * 0.1)
        return model

    return make
