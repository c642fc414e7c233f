"""`python -m turnkeeper`."""

from turnkeeper.cli import main

main()
