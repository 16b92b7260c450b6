-- Delete the kept choice: a cheaper one replaces it.
DELETE FROM kept_choice
