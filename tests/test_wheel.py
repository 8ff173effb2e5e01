"""A wheel built from the repository holds all that a user needs."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def without_sources(monkeypatch):
    """What is tested is the wheel, not sources that a developer has on the path."""
    monkeypatch.delenv("PYTHONPATH", raising=False)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", str(place), str(ROOT)], check=True, capture_output=True)
    return next(place.glob("carryscope-*.whl"))


def answered(python: Path, where: Path) -> str:
    command = [str(python.with_name("carryscope")), "ask", "445+555", "--csv"]
    ended = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_wheel_answers_a_sum_where_only_its_dependencies_are(wheel, tmp_path):
    """Its dependencies are borrowed from this environment; carryscope itself is not."""
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    site = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    printed = answered(python, tmp_path)
    assert printed.splitlines()[1].startswith("445+555,")
    where = "import carryscope; print(carryscope.__file__)"
    found = subprocess.run([str(python), "-c", where], capture_output=True, text=True, check=True)
    assert str(tmp_path) in found.stdout


@pytest.mark.slow
def test_a_wheel_answers_a_sum_in_an_empty_environment(wheel, tmp_path):
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    for what in ("torch==2.13.0", str(wheel)):
        install = [str(python), "-m", "pip", "install", "--quiet", what]
        subprocess.run(install, check=True, capture_output=True)
    assert answered(python, tmp_path).splitlines()[1].startswith("445+555,")
