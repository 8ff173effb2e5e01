"""How fast carryscope is: ratios measured in turns, times, memory, and counts of work."""
