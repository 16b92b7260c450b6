-- All applications of a phase, where they must be carried out in portions.
CREATE OR REPLACE TEMP TABLE candidate AS SELECT * FROM application
