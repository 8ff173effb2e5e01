"""Training: recipes and presets, losses per digit and per task, the loop, exact resume."""
