-- Working tables
-- All temporary tables, each with the stage that works with it. They belong to one connection, and so to one e-graph; a file has none of them. Columns such as v0 are numbered, as many as the rules need: v0, v1, … So are g0 (signatures) and s0 (operands). Each source has its root0, pattern0 and m0, the match. Tables that are empty at first are created as they stand here; the others by CREATE TABLE AS in the stage's SQL, with these columns.

CREATE TEMP TABLE rule_join (
    join_group INTEGER, rule INTEGER, pattern0 INTEGER, is_symmetric BOOLEAN
);
COMMENT ON TABLE rule_join IS 'Match: which patterns the sources of multi-pattern rules are; created again for each set of rules.';

CREATE TEMP TABLE match (pattern INTEGER, root INTEGER, stamp INTEGER, g0 INTEGER, v0 INTEGER);
COMMENT ON TABLE match IS 'Match: where patterns match; signatures of the e-nodes and classes of the variables; stamp: the latest among the e-nodes.';

CREATE TEMP TABLE pair (
    rule INTEGER, root0 INTEGER, g0 INTEGER, b INTEGER[], m0 BIGINT
);
COMMENT ON TABLE pair IS 'Match: matches of all sources of a multi-pattern rule: signatures, classes of the variables, and the matches.';

CREATE TEMP TABLE pair_cut (rule INTEGER, root0 INTEGER);
COMMENT ON TABLE pair_cut IS 'Match: of rules with more pairs than fit, the class of the first root down to which pairs come first.';

CREATE TEMP TABLE extreme (classes INTEGER[]);
COMMENT ON TABLE extreme IS 'Match: one row, the classes whose elements may be extreme constants.';

CREATE TEMP TABLE known_class (is_known BOOLEAN[]);
COMMENT ON TABLE known_class IS 'Match: one row, by class from 1 on whether it depends on weights and constants only.';

CREATE TEMP TABLE instance (
    id INTEGER, rule INTEGER, pattern INTEGER, g0 INTEGER, root0 INTEGER
);
COMMENT ON TABLE instance IS 'Match: judged configurations, a rule on e-nodes of given signatures; until the exploration ends.';

CREATE TEMP TABLE template (
    instance INTEGER, step INTEGER, signature INTEGER, type INTEGER, head INTEGER, s0 INTEGER
);
COMMENT ON TABLE template IS 'Match: e-nodes that instances build, one a step, operands first; until the exploration ends.';

CREATE TEMP TABLE application (
    id INTEGER, rule INTEGER, instance INTEGER, root0 INTEGER, b INTEGER[], m0 BIGINT
);
COMMENT ON TABLE application IS 'Apply: what a phase carries out, in order: instance, roots, bindings (of variables, then of what is built); of multi-pattern rules, the matches until targets are built.';

CREATE TEMP TABLE candidate (
    id INTEGER, rule INTEGER, instance INTEGER, root0 INTEGER, b INTEGER[], m0 BIGINT
);
COMMENT ON TABLE candidate IS 'Apply: all applications of a phase that carries them out in batches.';

CREATE TEMP TABLE waiting (
    position INTEGER, id INTEGER, rule INTEGER, instance INTEGER, root0 INTEGER, b INTEGER[], m0 BIGINT
);
COMMENT ON TABLE waiting IS 'Apply: applications that the vanilla cycle filter carries out one at a time.';

CREATE TEMP TABLE built (
    made INTEGER, id INTEGER, rule INTEGER, instance INTEGER, root0 INTEGER, place0 INTEGER, b INTEGER[],
    class INTEGER, type INTEGER, head INTEGER, signature INTEGER, c0 INTEGER, reason BIGINT
);
COMMENT ON TABLE built IS 'Apply: applications (made is 0) with the classes of all that their targets have, and the e-nodes that did not exist (made is the id), as fresh has them.';

CREATE TEMP TABLE fresh (
    id INTEGER, class INTEGER, type INTEGER, rule INTEGER, signature INTEGER, head INTEGER, c0 INTEGER,
    c1 INTEGER, c2 INTEGER, c3 INTEGER, c4 INTEGER, reason BIGINT
);
COMMENT ON TABLE fresh IS 'Apply: e-nodes that targets need and that do not exist; a root is in the class of its source; reason: the id of the application that asks for that, times the most sources, and which of its sources that is, from 0.';

CREATE TEMP TABLE new_id (new_of INTEGER[]);
COMMENT ON TABLE new_id IS 'Apply: one row, the new ids of e-nodes once those beyond the node budget are gone.';

CREATE TEMP TABLE union_pair (
    round INTEGER, rule INTEGER, a INTEGER, b INTEGER, instance INTEGER, source INTEGER, bindings INTEGER[]
);
COMMENT ON TABLE union_pair IS 'Apply and rebuild: unions of the phase, by the round in which they are carried out.';

CREATE TEMP TABLE moved (old INTEGER, new INTEGER);
COMMENT ON TABLE moved IS 'Rebuild: classes that are not canonical any more, and what they have become.';

CREATE TEMP TABLE congruent (
    signature INTEGER, c0 INTEGER, c1 INTEGER, c2 INTEGER, c3 INTEGER, c4 INTEGER, kept INTEGER,
    lowest_class INTEGER, highest_class INTEGER
);
COMMENT ON TABLE congruent IS 'Rebuild: groups of equal e-nodes, the one that stays, and the lowest and highest of their classes.';

CREATE TEMP TABLE suspect (
    id INTEGER, match BIGINT, root INTEGER, leaves INTEGER[], lowest INTEGER
);
COMMENT ON TABLE suspect IS 'Cycles: applications that may close a cycle: a match with its variables, and the root of another one that may be, or be below, one of these, with its height.';

CREATE TEMP TABLE cycle_core (
    enode INTEGER, class INTEGER, child INTEGER, height INTEGER, child_height INTEGER, age INTEGER
);
COMMENT ON TABLE cycle_core IS 'Cycles: edges that may lie on a cycle, with the labels of both ends; age: the id of the e-node, or its place in the subgraph that is shown.';

CREATE TEMP TABLE descendant (class INTEGER, descendant INTEGER);
COMMENT ON TABLE descendant IS 'Cycles: all pairs of a class and one below it or itself, for the vanilla cycle filter.';

CREATE TEMP TABLE entering (enode INTEGER, application INTEGER, step INTEGER);
COMMENT ON TABLE entering IS 'Subgraphs: e-nodes of targets that are not in the subgraph, with the first application, and its step, that they are a part of.';

CREATE TEMP TABLE hidden_oldest (kept INTEGER, oldest INTEGER, stamp INTEGER);
COMMENT ON TABLE hidden_oldest IS 'Subgraphs: groups of equal e-nodes whose oldest is not shown, although one is that would stay.';

CREATE TEMP TABLE equal_member (
    subgraph INTEGER, enode INTEGER, place INTEGER, application INTEGER, kept INTEGER
);
COMMENT ON TABLE equal_member IS 'Subgraphs: members that are equal to others, each with the e-node that stays.';
