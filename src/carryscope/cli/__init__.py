"""One command per stage, and `study`, which walks through them all."""
