"""A run for a target: graphs as it runs them, what they cost there, and as they are written for it."""
