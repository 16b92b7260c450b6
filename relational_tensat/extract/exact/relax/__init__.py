"""Relaxations and cuts: bounds that no choice can beat."""
