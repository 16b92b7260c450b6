-- Forget why the last exploration ended, and the rows of its search alone: another begins, and names its subgraphs by itself.
DELETE FROM meta WHERE key = 'stop_reason';
DROP TABLE IF EXISTS subgraph;
DROP TABLE IF EXISTS subgraph_node;
DROP TABLE IF EXISTS subgraph_application;
DROP TABLE IF EXISTS subgraph_choice;
DROP TABLE IF EXISTS universe_application;
DROP TABLE IF EXISTS tree_decision;
DROP TABLE IF EXISTS tree_node;
DROP TABLE IF EXISTS tree_rollout
