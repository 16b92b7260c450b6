-- What was the cheapest choice is so no more.
DELETE FROM kept_choice
