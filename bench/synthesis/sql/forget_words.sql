-- Words of the rule before.
DELETE FROM word_holds
