"""TASO's sequential search on our rules and costs."""
