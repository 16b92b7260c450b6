"""Rules that find themselves: TASO again, laws left out, planted false ones, and what they are worth."""
