-- Of a subgraph's members that are equal, the one that stays has the first one's place and reason.
INSERT INTO subgraph_node
SELECT subgraph, kept, min(place), arg_min(application, place) FROM equal_member GROUP BY subgraph, kept
