"""Benchmarks and the models that they run on: ``python -m bench``."""
