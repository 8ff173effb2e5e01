"""`python -m carryscope` is the console script."""

from carryscope.cli.main import main

main()
