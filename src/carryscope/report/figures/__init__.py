"""Figures: drawings of findings, made inside this process. Nothing is drawn before it is shown."""
