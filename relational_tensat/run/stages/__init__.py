"""The stages of a run: each takes what the one before hands on (``run/values.py``)."""
