"""Speed, as ratios of things measured in turns in one run, and counts of work."""
