-- E-nodes that patterns would compare wrongly.
SELECT e.id FROM enode AS e JOIN signature AS s ON s.id = e.signature WHERE e.head <> s.head
