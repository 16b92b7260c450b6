-- Which patterns a rule's sources are, and what its instances build. Made anew for each set of rules.
CREATE OR REPLACE TEMP TABLE rule_pattern (rule INTEGER, pattern INTEGER);
CREATE OR REPLACE TEMP TABLE rule_join (
    join_group INTEGER, rule INTEGER, first_pattern INTEGER, second_pattern INTEGER, is_symmetric BOOLEAN
);
-- One e-node of a target, built in its step: s0… are positions in the bindings (from 1), 0 for no child.
CREATE OR REPLACE TEMP TABLE template (
    instance INTEGER, step INTEGER, signature INTEGER, type INTEGER, head INTEGER,
    s0 INTEGER, s1 INTEGER, s2 INTEGER, s3 INTEGER, s4 INTEGER
);
