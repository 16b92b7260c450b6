-- Learning
-- Which rules were of use, and what a run took from runs before it (`--learn-from`).

CREATE TABLE needed_application (
    place BIGINT NOT NULL, rule INTEGER NOT NULL, instance INTEGER NOT NULL, bindings INTEGER[] NOT NULL
);
COMMENT ON TABLE needed_application IS
'The backward slice of the result: applications that made its e-nodes, or what those were applied to, back to the original graph. Where more than 50,000 unions were asked for by rules, it is not made.';
COMMENT ON COLUMN needed_application.place IS 'Key: its place among the rows of union_log with a rule, from 1 on.';
COMMENT ON COLUMN needed_application.rule IS 'Joins rule.id.';
COMMENT ON COLUMN needed_application.instance IS 'Joins instance_log.id.';
COMMENT ON COLUMN needed_application.bindings IS 'As union_log.bindings.';

CREATE TABLE rule_use (
    rule INTEGER NOT NULL, weights BOOLEAN[] NOT NULL, applied BIGINT NOT NULL, needed BIGINT NOT NULL
);
COMMENT ON TABLE rule_use IS 'How many applications of a rule there were, and how many the result needs, by what they were applied to.';
COMMENT ON COLUMN rule_use.rule IS 'Joins rule.id.';
COMMENT ON COLUMN rule_use.weights IS 'Which of the rule''s tensor variables depended on weights and constants only, in their order.';
COMMENT ON COLUMN rule_use.applied IS 'Applications that asked for a union, as union_log has them.';
COMMENT ON COLUMN rule_use.needed IS 'Those of them that are in needed_application.';

CREATE TABLE learned (rule INTEGER NOT NULL, weights BOOLEAN[] NOT NULL, weight DOUBLE NOT NULL);
COMMENT ON TABLE learned IS 'What this run took from runs before it: how much earlier than others applications come; where there is no row, 1.';
COMMENT ON COLUMN learned.rule IS 'Joins rule.id.';
COMMENT ON COLUMN learned.weights IS 'As rule_use.weights.';
COMMENT ON COLUMN learned.weight IS
'How often such applications were needed, relative to all: of two kinds, one comes as often as the other in proportion to their weights.';
