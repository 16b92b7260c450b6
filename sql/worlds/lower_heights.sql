-- No height label lies above another: those that a world needs are raised then.
UPDATE eclass SET height = 0 WHERE height > 0
