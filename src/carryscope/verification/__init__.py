"""How often a model fails and where, and whether a stated algorithm is the one it runs."""
