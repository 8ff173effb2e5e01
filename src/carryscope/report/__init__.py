"""Findings made visible: figures that need no browser and no network."""
