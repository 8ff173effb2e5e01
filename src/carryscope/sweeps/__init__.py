"""Many runs side by side: the seeds of a recipe, or any list of runs."""
