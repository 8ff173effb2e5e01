"""The version of carryscope, which every finding records."""

__version__ = "0.2.0"
