"""The paper again: its models, its claims beside what is measured, and many seeds."""
