"""Models of today, exported on the spot: optimized as users do it, they must compute the same."""
