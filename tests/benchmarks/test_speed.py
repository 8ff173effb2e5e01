import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks.dissection import untrained
from benchmarks.speed import in_turns, peer_process
from carryscope.core.errors import WorkError
from carryscope.model.config import ModelConfig


def test_a_peer_answers_line_by_line(tmp_path):
    script = tmp_path / "echo.py"
    script.write_text(
        "import sys\nfor line in sys.stdin:\n    print(sys.argv[1], line, end='', flush=True)\n"
    )
    with peer_process(Path(sys.executable), str(script), 7) as ask:
        assert [ask("a"), ask("b")] == ["7 a\n", "7 b\n"]


def test_a_peer_that_cannot_start_is_told_in_a_sentence(tmp_path):
    script = tmp_path / "broken.py"
    script.write_text("import a_library_that_nobody_has\n")
    with (
        peer_process(Path(sys.executable), str(script)) as ask,
        pytest.raises(WorkError, match="cannot run TransformerLens"),
    ):
        ask("1")


def test_turns_alternate_and_the_first_is_not_counted():
    took, heard = {"a": iter([9.0, 1.0, 2.0, 3.0]), "b": iter([9.0, 4.0, 4.0, 4.0])}, []

    def contestant(name):
        def take_turn(count):
            heard.append((name, count))
            return next(took[name])

        return take_turn

    assert in_turns({n: contestant(n) for n in "ab"}, 3, turn=1) == {"a": 2.0, "b": 4.0}
    assert heard == [("a", 1), ("b", 1)] * 4


def test_the_high_water_mark_stays_when_memory_is_freed():
    code = (
        "import torch; from benchmarks.speed import high_water_mark as mark; "
        "before = mark(); torch.ones(100_000_000); print(before < mark())"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "True\n"


def test_the_untrained_model_is_not_the_control_of_its_own_dissection():
    from carryscope.dissection.dissect import UNTRAINED_SEED
    from carryscope.model.transformer import Transformer, initialise

    config = ModelConfig(digits=2, d_model=24)
    generator = torch.Generator().manual_seed(UNTRAINED_SEED)
    control = initialise(Transformer(config), generator)
    assert not torch.equal(untrained(config).embed.W_E, control.embed.W_E)
