-- E-nodes no longer wait once their children are settled, or another of their class is chosen.
DELETE FROM dag_waiting AS w
WHERE EXISTS (SELECT 1 FROM dag_candidate AS k WHERE k.egraph = w.egraph AND k.enode = w.enode)
    OR EXISTS (SELECT 1 FROM dag_choice AS c WHERE c.wave = $wave AND c.egraph = w.egraph AND c.class = w.class)
