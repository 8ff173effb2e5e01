"""carryscope: train small transformers to add, see how they do it, know where they fail."""

__version__ = "0.1.0"
