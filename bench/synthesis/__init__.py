"""Rules that find themselves: TASO again, laws left out and found, planted false ones, other people's models."""
