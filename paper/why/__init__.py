"""Why cascades fail: heads and data, crossed. `python -m paper.why` trains, measures and writes."""
