-- The applications that bring e-nodes into the subgraph, of which $last are known and whose next place is $place.
INSERT INTO subgraph_application
SELECT
    $subgraph, ($last + row_number() OVER (ORDER BY a.id))::INTEGER, $place, $iteration, a.rule, a.instance,
    list_filter([a.root0, a.root1], lambda r: r > 0), a.b
FROM application AS a SEMI JOIN entering ON entering.application = a.id
