import sys
from pathlib import Path

import pytest
import torch

from benchmarks.measure import Measure, in_turns, timed
from benchmarks.other_side import Reply, peer_process
from carryscope.core.errors import WorkError
from carryscope.task.questions import Questions


@pytest.mark.parametrize(
    ("target", "text", "met"),
    [
        ({"at_least": 4}, "at least 4", True),
        ({"at_least": 5}, "at least 5", False),
        ({"at_most": 5600}, "at most 5,600", True),
        ({"at_most": 4.5}, "at most 4.5", False),
        ({}, "", None),
    ],
)
def test_a_measure_says_whether_it_meets_its_target(target, text, met):
    measure = Measure(name="speed", value=4.61, unit="x", how="in turns", **target)
    assert (measure.text, measure.target, measure.met) == ("4.61 x", text, met)


def test_turns_alternate_and_the_first_is_not_counted():
    took, heard = {"a": iter([9.0, 1.0, 2.0, 3.0]), "b": iter([9.0, 4.0, 4.0, 4.0])}, []

    def contestant(name):
        def turn():
            heard.append(name)
            return next(took[name])

        return turn

    assert in_turns({name: contestant(name) for name in "ab"}, 3) == {"a": 2.0, "b": 4.0}
    assert heard == ["a", "b"] * 4


def test_a_turn_returns_the_seconds_of_one_item(monkeypatch):
    clock, calls = iter([10.0, 22.0]), []
    monkeypatch.setattr("benchmarks.measure.time.perf_counter", lambda: next(clock))
    assert timed(lambda: calls.append(1), repeat=3, items=2)() == 2.0
    assert len(calls) == 3


@pytest.fixture
def work(random_model):
    """A model and a question for the other side."""
    return random_model(digits=1), Questions.from_integers([(0, 0)], 1)


def test_a_peer_replies_line_by_line(work, tmp_path):
    script = tmp_path / "echo.py"
    script.write_text(
        "import json, sys\nfor line in sys.stdin:\n"
        "    reply = float(sys.argv[1]), json.loads(line)\n"
        "    print(json.dumps(dict(zip(('seconds', 'right'), reply))), flush=True)\n"
    )
    threads = torch.get_num_threads()
    with peer_process(Path(sys.executable), *work, str(script)) as ask:
        assert [ask("[true]"), ask("[false]")] == [Reply(threads, [True]), Reply(threads, [False])]


def test_a_peer_that_cannot_start_is_an_error_of_one_sentence(work, tmp_path):
    script = tmp_path / "broken.py"
    script.write_text("import a_library_that_nobody_has\n")
    with (
        peer_process(Path(sys.executable), *work, str(script)) as ask,
        pytest.raises(WorkError, match="cannot run TransformerLens"),
    ):
        ask("1")
