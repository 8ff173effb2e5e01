"""The transformer: its config, its forward pass, named sites, the answer path, its files."""
