"""Strategies of exploration: what decides which step is taken next."""
