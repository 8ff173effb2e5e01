"""The version of carryscope, which every finding records."""

__version__ = "0.1.0"
