"""The explorer: one page in which a model runs, and can be taken apart, in any browser."""
