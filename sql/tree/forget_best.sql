-- Delete how the cheapest world came about: it is written anew.
DELETE FROM tree_best
