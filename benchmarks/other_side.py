"""The other side: a process with TransformerLens that does the same work, turn by turn.

In: a model and questions. Out: a function that gives the process a line and returns its `Reply`.
`peer.py` has the lines it understands.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import torch

from benchmarks import peer
from carryscope.core.errors import WorkError
from carryscope.dissection.interventions import all_nodes
from carryscope.model.transformer import Transformer
from carryscope.model.transformer_lens import hooked_transformer_config, write_state_dict
from carryscope.task.questions import Questions

PEER_SCRIPT = str(Path(__file__).with_name("peer.py"))
"""What runs in the other Python."""


class Reply(msgspec.Struct, frozen=True):
    """What the process with TransformerLens returns for one turn."""

    seconds: float
    right: list[bool]


@contextmanager
def peer_process(
    python: Path, model: Transformer, questions: Questions, script: str = PEER_SCRIPT
) -> Iterator[Callable[[str], Reply]]:
    """A function that gives a line to a process with TransformerLens and returns its reply.

    The process has the same model and questions, and as many threads as this one.
    """
    with tempfile.TemporaryDirectory() as directory:
        leave_work(model, questions, Path(directory))
        process = subprocess.Popen(
            [python, script, str(torch.get_num_threads()), directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"},
        )

        def ask(line: str) -> Reply:
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(BrokenPipeError):
                process.stdin.write(f"{line}\n")
                process.stdin.flush()
            if not (reply := process.stdout.readline()):
                raise WorkError(
                    f"{python} cannot run TransformerLens 2.x. To see why, run: "
                    f"{python} -c 'import transformer_lens'. `make bench` installs one that works."
                )
            return msgspec.json.decode(reply, type=Reply)

        try:
            yield ask
        finally:
            process.kill()
            process.communicate()  # waits, and closes the pipes


def leave_work(model: Transformer, questions: Questions, directory: Path) -> None:
    """Write the files from which TransformerLens does the same work."""
    config = model.config
    work = {
        "config": hooked_transformer_config(config),
        "tokens": torch.from_numpy(config.layout.encode(questions)),
        "answer_length": config.layout.answer_length,
        "nodes": [(node.site, node.row, node.head) for node in all_nodes(config)],
    }
    write_state_dict(model, directory / peer.WEIGHTS_FILE)
    torch.save(work, directory / peer.WORK_FILE)
