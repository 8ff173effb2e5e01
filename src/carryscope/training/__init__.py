"""Training: recipes, losses per digit and per task, and a loop that resumes exactly."""
