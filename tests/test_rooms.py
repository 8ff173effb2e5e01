"""Data flows one way: a room imports only from the rooms before it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import carryscope

PACKAGE = Path(carryscope.__file__).parent
ROOMS = [
    "version",
    "core",
    "shipped",
    "task",
    "model",
    "training",
    "dissection",
    "verification",
    "certificate",
    "report",
    "fits",
    "stages",
    "run",
    "api",
    "repairing",
    "sweeps",
    "cli",
    "__main__",
    "__init__",
]
FILES = sorted(PACKAGE.rglob("*.py"))


def room_of(file: Path) -> str:
    return file.relative_to(PACKAGE).with_suffix("").parts[0]


def rooms_imported(file: Path) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} uses a relative import"
            modules.add(node.module)
    ours = [module.split(".") for module in modules if module.split(".")[0] == "carryscope"]
    return {parts[1] if len(parts) > 1 else "__init__" for parts in ours}


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_a_room_imports_only_from_rooms_before_it(file):
    allowed = ROOMS[: ROOMS.index(room_of(file)) + 1]
    assert rooms_imported(file) <= set(allowed)


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_files_stay_small_enough_to_read_in_one_sitting(file):
    assert len(file.read_text().splitlines()) <= 300


def test_the_task_is_numpy_only():
    for file in (PACKAGE / "task").glob("*.py"):
        assert "torch" not in file.read_text().replace("no torch", "")


@pytest.mark.parametrize("module", ["carryscope", "carryscope.cli.main", "carryscope.cli.train"])
def test_torch_is_not_imported_before_it_is_needed(module):
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
