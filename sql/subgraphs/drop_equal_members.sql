-- Take out the members that are equal to others.
DELETE FROM subgraph_node WHERE enode IN (SELECT enode FROM equal_member)
