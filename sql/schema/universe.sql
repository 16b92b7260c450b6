-- The universe
-- The applications of rules in the one e-graph that all subgraphs of a search are parts of; runs with `--search mcts` and `--search
-- focus-mcts` have this table. Each application is found and built once, whichever subgraph asks first.

CREATE TABLE universe_application (
    id INTEGER NOT NULL, rule INTEGER NOT NULL, instance INTEGER NOT NULL, state VARCHAR NOT NULL,
    sources INTEGER[] NOT NULL, targets INTEGER[] NOT NULL, bindings INTEGER[] NOT NULL
);
COMMENT ON TABLE universe_application IS
'Every application of a rule that was found in the universe: a rule on e-nodes. Those of multi-pattern rules are looked for only where a subgraph has both sources. With `--search focus-mcts`, as all was when tree search ended: e-nodes that became equal since are not there any more.';
COMMENT ON COLUMN universe_application.id IS 'Key, from 1 on, in the order in which they were found.';
COMMENT ON COLUMN universe_application.rule IS 'Joins rule.id.';
COMMENT ON COLUMN universe_application.instance IS 'What the rule matched, a rule on e-nodes of given signatures; as union_log.instance.';
COMMENT ON COLUMN universe_application.state IS
'built; waiting (no subgraph asked for it, or there was no room); rejected (it would have closed a cycle, or is one with another).';
COMMENT ON COLUMN universe_application.sources IS
'The e-nodes of its sources in pre-order, one source after the other; each joins enode.id. A subgraph that has all of them may use it.';
COMMENT ON COLUMN universe_application.targets IS 'The e-nodes that it brings into a subgraph, operands first; each joins enode.id. Empty where it is not built.';
COMMENT ON COLUMN universe_application.bindings IS
'The classes at the leaves of its sources, 0 where there are fewer than of other rules; each joins eclass.id.';
