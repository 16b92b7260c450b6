-- Reasons
-- For every union, why it was made.

CREATE TABLE union_log (
    iteration INTEGER NOT NULL, rule INTEGER NOT NULL, a INTEGER NOT NULL, b INTEGER NOT NULL,
    instance INTEGER, source INTEGER, bindings INTEGER[]
);
COMMENT ON TABLE union_log IS
'Every union and its reason, in the order in which they were asked for (rowid). Classes are named as they were then.';
COMMENT ON COLUMN union_log.iteration IS 'Iteration; 0: equal nodes of the original graph.';
COMMENT ON COLUMN union_log.rule IS 'Rule that asked for it; joins rule.id, 0: congruence.';
COMMENT ON COLUMN union_log.a IS 'One class; joins eclass.id.';
COMMENT ON COLUMN union_log.b IS 'The other class; joins eclass.id.';
COMMENT ON COLUMN union_log.instance IS 'What the rule matched; joins instance_log.id, NULL for congruence.';
COMMENT ON COLUMN union_log.source IS
'Which of the rule''s sources (from 0) it is whose class became one with that of its target; NULL for congruence.';
COMMENT ON COLUMN union_log.bindings IS
'The classes that the rule was applied to: the leaves of its sources, then what it built; NULL for congruence. See rule.operands.';

CREATE TABLE instance_log (id INTEGER NOT NULL, rule INTEGER NOT NULL, signatures INTEGER[] NOT NULL);
COMMENT ON TABLE instance_log IS
'The instances that unions name: a rule on e-nodes of given signatures.';
COMMENT ON COLUMN instance_log.id IS 'Key.';
COMMENT ON COLUMN instance_log.rule IS 'Joins rule.id.';
COMMENT ON COLUMN instance_log.signatures IS
'Signatures of the e-nodes that the sources match, in pre-order, one source after the other; each joins signature.id.';
