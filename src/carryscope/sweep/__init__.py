"""Many seeds of one recipe, side by side: is the algorithm the same in all of them?"""
