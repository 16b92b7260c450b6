-- The final extraction, before it is made anew, and what was made of it.
DELETE FROM extraction_log WHERE final;
DELETE FROM meta WHERE key = 'kept_original'
