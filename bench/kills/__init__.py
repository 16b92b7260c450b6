"""Runs that are killed at random moments, and resumed: what is there is whole, and nothing is lost."""
