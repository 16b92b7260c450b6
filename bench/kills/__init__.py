"""Runs that are killed at random moments, and resumed to the end that they would have had."""
