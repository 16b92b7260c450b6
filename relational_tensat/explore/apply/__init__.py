"""Applying rules: targets are built and united with their sources."""
