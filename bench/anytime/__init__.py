"""How early a good graph is known: extraction while exploration goes on."""
