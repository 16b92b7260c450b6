-- Drop the applications whose e-nodes exceed the node budget.
DELETE FROM application WHERE id > $last
