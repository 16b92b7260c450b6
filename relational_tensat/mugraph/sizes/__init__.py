"""How often grids and loops split their variables: the cheapest sizes by a model of waves of blocks."""
