"""The pages about the code name files that exist, and link to pages that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").glob("*.md"),
]
PLACES = (ROOT, ROOT / "src" / "carryscope")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    local = [link for link in links if not link.startswith("http")]
    assert [link for link in local if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_files_exist(page):
    if page.name == "CHANGELOG.md":
        return  # it names what was there at the time
    named = re.findall(r"`(\w[\w./-]*/[\w.-]*\.(?:py|md|json)|\w+/)`", page.read_text())
    missing = [name for name in named if not any((place / name).exists() for place in PLACES)]
    assert [name for name in missing if not name.startswith(("runs/", "findings/"))] == []
