"""Many runs side by side: seeds of one recipe, or any list of runs."""
