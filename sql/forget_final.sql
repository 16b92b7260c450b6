-- The final extraction, before it is made anew.
DELETE FROM extraction_log WHERE final
