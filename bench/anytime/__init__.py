"""How early a good graph is known: extraction between the iterations of exploration."""
