-- The last extraction was not the final one: exploration goes on. Forget its decisions.
UPDATE extraction_log SET final = false WHERE final;
DELETE FROM meta WHERE key IN ('kept_original', 'estimated_costs', 'gain', 'account')
