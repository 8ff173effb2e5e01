"""The study of the MLP that the paper asks for: a model without it, and with parts learnt again."""
