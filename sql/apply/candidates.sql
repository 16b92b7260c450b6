-- All applications of a phase, where they are carried out batch by batch.
CREATE OR REPLACE TEMP TABLE candidate AS SELECT * FROM application
