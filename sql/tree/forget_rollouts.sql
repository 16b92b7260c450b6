-- Delete the rollouts of a tree that came to no decision before its process was killed.
DELETE FROM tree_rollout WHERE decision > $decision
