-- Whether a rule made an e-node: it is none of the original graph.
SELECT rule <> 0 FROM enode WHERE id = $enode
