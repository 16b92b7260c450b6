"""Fleets whose processes are killed, and what a fleet takes beside its tasks."""
