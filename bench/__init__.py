"""The benchmark: `make bench`, or `python -m bench.run`. How it measures: bench/README.md."""
