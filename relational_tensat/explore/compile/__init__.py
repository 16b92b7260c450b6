"""Rules compiled to SQL: skeletons, prefixes, and the query of a search."""
