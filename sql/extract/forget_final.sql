-- Delete the final extraction, before it is repeated, and what was decided by it.
DELETE FROM extraction_log WHERE final;
DELETE FROM meta WHERE key IN ('kept_original', 'estimated_costs')
