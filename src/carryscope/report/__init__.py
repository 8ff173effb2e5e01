"""Findings made visible: parts, and what shows them as a page, as Markdown or in a terminal."""
