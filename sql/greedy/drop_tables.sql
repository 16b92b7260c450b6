-- What greedy extraction in SQL leaves behind in an e-graph's database.
DROP TABLE IF EXISTS greedy_node;
DROP TABLE IF EXISTS greedy_edge;
DROP TABLE IF EXISTS tree_choice;
DROP TABLE IF EXISTS dag_bound;
DROP TABLE IF EXISTS dag_choice;
DROP TABLE IF EXISTS dag_member;
DROP TABLE IF EXISTS dag_ready;
DROP TABLE IF EXISTS dag_waiting;
DROP TABLE IF EXISTS dag_candidate;
