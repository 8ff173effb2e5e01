"""Is every seed of an exact recipe exact? `python -m paper.exact` trains, proves and writes."""
