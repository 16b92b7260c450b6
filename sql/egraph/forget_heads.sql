-- Delete the heads of the exploration before this one.
DELETE FROM head
