-- The heads of an exploration before this one.
DELETE FROM head
