"""Whether a μGraph computes its program: random tests in finite fields, in float64, in its element type."""
