-- Which patterns the sources of multi-pattern rules are. Created again for each set of rules.
CREATE OR REPLACE TEMP TABLE rule_join (
    join_group INTEGER, rule INTEGER, first_pattern INTEGER, second_pattern INTEGER, is_symmetric BOOLEAN
);
