import pytest
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.training import bare_step
from carryscope.training.presets import run_config
from carryscope.training.trainer import Trainer


@pytest.mark.parametrize("fields", [{}, {"heads": 2, "digits": 3}, {"d_mlp": 0}, {"layers": 2}])
def test_the_bare_products_are_those_of_a_training_step(fields):
    trainer = Trainer(run_config("paper-5", {"batch": 8, "d_model": 24, **fields}))
    bare = bare_step(trainer)
    with FlopCounterMode(display=False) as step:
        trainer.advance()
    with FlopCounterMode(display=False) as again:
        bare()
    assert step.get_total_flops() == again.get_total_flops() > 0
