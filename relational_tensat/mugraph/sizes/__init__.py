"""Sizes of grids and loops: the cheapest splits by a model of waves of blocks."""
