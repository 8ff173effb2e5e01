import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.products import bare_step, products_of_a_step
from carryscope.core.errors import CallError
from carryscope.model.config import ModelConfig
from carryscope.training.presets import run_config
from carryscope.training.trainer import Trainer


@pytest.mark.parametrize("fields", [{}, {"heads": 2, "digits": 3}, {"format": "signed"}])
def test_the_bare_products_are_those_of_a_training_step(fields):
    trainer = Trainer(run_config("paper-5", {"batch": 8, **fields}))
    products = products_of_a_step(trainer.model.config, 8)
    with FlopCounterMode(display=False) as step:
        trainer.advance()
    with FlopCounterMode(display=False) as bare:
        bare_step(products, torch.Generator().manual_seed(0))()
    assert step.get_total_flops() == bare.get_total_flops()


def test_shapes_that_are_not_written_down_are_refused():
    with pytest.raises(CallError, match="one layer with an MLP"):
        products_of_a_step(ModelConfig(layers=2), 64)
