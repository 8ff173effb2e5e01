"""Speed of carryscope, side by side with TransformerLens. Run by `make bench`."""

import carryscope  # noqa: F401  (before torch: threads that wait for each other then sleep)
