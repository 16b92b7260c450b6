-- The exploration
-- The work of its iterations. Those of another exploration of the e-graph, by any process, are numbered on.

CREATE TABLE meta (key VARCHAR PRIMARY KEY, value VARCHAR NOT NULL);
COMMENT ON TABLE meta IS 'Facts about the run.';
COMMENT ON COLUMN meta.key IS
'Key: format_version (of these tables), model (its name), stop_reason (why exploration ended), kept_original (why the original was written although a cheaper graph was extracted), gain (what the run gained, and whether that was measured or is modelled), account (what the run told of its result, as JSON), estimated_costs (how many of the costs are estimates where others were measured).';
COMMENT ON COLUMN meta.value IS 'Value, as text.';

CREATE TABLE iteration_log (
    iteration INTEGER NOT NULL, e_nodes BIGINT NOT NULL, e_classes BIGINT NOT NULL, matches BIGINT NOT NULL,
    unions BIGINT NOT NULL, filtered BIGINT NOT NULL, statements BIGINT NOT NULL, seconds DOUBLE NOT NULL
);
COMMENT ON TABLE iteration_log IS 'The iterations of all explorations of the e-graph.';
COMMENT ON COLUMN iteration_log.iteration IS 'Key, from 1 on.';
COMMENT ON COLUMN iteration_log.e_nodes IS 'E-nodes after it.';
COMMENT ON COLUMN iteration_log.e_classes IS 'Canonical e-classes after it.';
COMMENT ON COLUMN iteration_log.matches IS 'Matches of rules that it worked on.';
COMMENT ON COLUMN iteration_log.unions IS 'Unions that it asked for, congruence included.';
COMMENT ON COLUMN iteration_log.filtered IS 'E-nodes that the cycle filter took out.';
COMMENT ON COLUMN iteration_log.statements IS 'SQL statements that it ran.';
COMMENT ON COLUMN iteration_log.seconds IS 'Wall-clock seconds.';

CREATE TABLE match_log (iteration INTEGER NOT NULL, rule INTEGER NOT NULL, matches BIGINT NOT NULL);
COMMENT ON TABLE match_log IS 'How many matches of a rule were worked on in an iteration; none: no row.';
COMMENT ON COLUMN match_log.iteration IS 'Joins iteration_log.iteration.';
COMMENT ON COLUMN match_log.rule IS 'Joins rule.id.';
COMMENT ON COLUMN match_log.matches IS 'Matches; several rows of an iteration and a rule are to be added.';

CREATE TABLE rule_time (rule INTEGER NOT NULL, seconds DOUBLE NOT NULL);
COMMENT ON TABLE rule_time IS 'How long the searches for a rule took in all; of explorations that have ended.';
COMMENT ON COLUMN rule_time.rule IS 'Joins rule.id.';
COMMENT ON COLUMN rule_time.seconds IS
'Wall-clock seconds; those of a statement are shared evenly by the rules that it searches for.';
