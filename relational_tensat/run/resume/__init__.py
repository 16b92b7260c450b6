"""Resuming a run: its database is opened, and explored on from what is there."""
