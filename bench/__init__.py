"""Benchmarks and the models that they run on: ``python -m bench``."""

from relational_tensat.cli.process_limits import limit_blas_threads

limit_blas_threads()  # as in ``run``, before any command loads NumPy
