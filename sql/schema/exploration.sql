-- The exploration
-- What its iterations did, and where another process would resume it.

CREATE TABLE meta (key VARCHAR PRIMARY KEY, value VARCHAR NOT NULL);
COMMENT ON TABLE meta IS 'Facts about the run.';
COMMENT ON COLUMN meta.key IS
'Key: format_version (of these tables), model (its name), stop_reason (why exploration ended), kept_original (why the original was written although a cheaper graph was extracted), gain (what the run gained, and whether that was measured or is modelled), estimated_costs (how many of the costs are estimates where others were measured).';
COMMENT ON COLUMN meta.value IS 'Value, as text.';

CREATE TABLE iteration_log (
    iteration INTEGER NOT NULL, e_nodes BIGINT NOT NULL, e_classes BIGINT NOT NULL, matches BIGINT NOT NULL,
    unions BIGINT NOT NULL, filtered BIGINT NOT NULL, statements BIGINT NOT NULL, seconds DOUBLE NOT NULL
);
COMMENT ON TABLE iteration_log IS 'The iterations of the exploration.';
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
COMMENT ON TABLE rule_time IS 'How long the searches for a rule took in all.';
COMMENT ON COLUMN rule_time.rule IS 'Joins rule.id.';
COMMENT ON COLUMN rule_time.seconds IS
'Wall-clock seconds; those of a statement are shared evenly by the rules that it searches for.';

CREATE TABLE checkpoint (
    first_rule INTEGER NOT NULL, iteration INTEGER NOT NULL, stopped VARCHAR NOT NULL,
    multi_done INTEGER NOT NULL, since_single INTEGER NOT NULL, since_multi INTEGER NOT NULL,
    quiet BOOLEAN NOT NULL, left_out BOOLEAN NOT NULL, scarce BOOLEAN NOT NULL,
    original BIGINT NOT NULL,
    next_id INTEGER NOT NULL, clock INTEGER NOT NULL, e_nodes BIGINT NOT NULL, e_classes BIGINT NOT NULL,
    rule_seconds DOUBLE[] NOT NULL
);
COMMENT ON TABLE checkpoint IS
'Where the exploration was after each of its iterations, for another process to resume it there; the last row counts.';
COMMENT ON COLUMN checkpoint.first_rule IS 'The first rule of the exploration; joins rule.id.';
COMMENT ON COLUMN checkpoint.iteration IS 'The last iteration that is complete; 0: none.';
COMMENT ON COLUMN checkpoint.stopped IS 'Why it is the last one (saturated or nodes); empty: it is not.';
COMMENT ON COLUMN checkpoint.multi_done IS 'Iterations with multi-pattern rules so far.';
COMMENT ON COLUMN checkpoint.since_single IS 'Clock when single-pattern rules were last matched; see enode.stamp.';
COMMENT ON COLUMN checkpoint.since_multi IS 'Clock when multi-pattern rules were last matched; see enode.stamp.';
COMMENT ON COLUMN checkpoint.quiet IS 'Whether the iteration added nothing.';
COMMENT ON COLUMN checkpoint.left_out IS 'Whether a limit kept matches of multi-pattern rules from being applied.';
COMMENT ON COLUMN checkpoint.scarce IS
'Whether multi-pattern rules have less of the node budget, since they left the others too little.';
COMMENT ON COLUMN checkpoint.original IS 'E-nodes before the first iteration.';
COMMENT ON COLUMN checkpoint.next_id IS 'The id of the next e-node and class.';
COMMENT ON COLUMN checkpoint.clock IS 'The clock; see enode.stamp.';
COMMENT ON COLUMN checkpoint.e_nodes IS 'E-nodes.';
COMMENT ON COLUMN checkpoint.e_classes IS 'Canonical e-classes.';
COMMENT ON COLUMN checkpoint.rule_seconds IS 'Wall-clock seconds of searching by rule, from first_rule on.';
