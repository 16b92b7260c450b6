-- Where a tree search was.
FROM tree_state
