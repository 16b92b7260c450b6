-- The facts about each term: operators, stage, abstract class, fingerprint.
SELECT id, size, stage, class, value FROM term
