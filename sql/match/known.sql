-- One row: by class, from 1 on, whether it depends on weights and constants only.
CREATE OR REPLACE TEMP TABLE known_class AS SELECT $is_known::BOOLEAN[] AS is_known
