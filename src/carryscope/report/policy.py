"""What a page of ours may run and load: its own scripts and style, known by hash, and nothing else.

In: inline scripts and a style. Out: the text of a Content-Security-Policy.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable

NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'"


def content_policy(scripts: Iterable[str], style: str, *, pictures: bool = False) -> str:
    """The policy; with `pictures`, of data in the page or made by its scripts."""
    allowed = " ".join(_source_hash(script) for script in scripts)
    parts = [NOTHING, f"script-src {allowed}", f"style-src {_source_hash(style)}"]
    return "; ".join([*parts, "img-src data: blob:"] if pictures else parts)


def _source_hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
