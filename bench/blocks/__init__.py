"""What exploring recurring blocks once gains."""
