-- Merging switched off: evaluated candidates get values of their own, as their terms have.
UPDATE evaluated SET value = hash(value, id, size)
