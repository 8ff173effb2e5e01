"""What must be computed: columns and sub-tasks, questions, strata, tokens, algorithms.

Everything here is numpy: no model, no torch. Digits are stored units first, so
`columns.sums[:, 0]` is column 0 and `answer[:, k]` is the answer digit A_k.
"""
