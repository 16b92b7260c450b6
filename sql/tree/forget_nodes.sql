-- Delete the tree that came to no decision before its process was killed.
DELETE FROM tree_node WHERE decision > $decision
