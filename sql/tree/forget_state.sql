-- Delete where a tree search was: it goes on, or has ended.
DELETE FROM tree_state
