"""Many runs side by side: the seeds of a recipe, or any list of runs."""

from carryscope.sweep.drive import sweep

__all__ = ["sweep"]
