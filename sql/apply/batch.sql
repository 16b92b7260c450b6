-- The next batch of the applications of a phase.
CREATE OR REPLACE TEMP TABLE application AS
SELECT * FROM candidate WHERE id > $after AND id <= $upto
