"""The transformer: config, forward pass, named sites, answer path, files."""
