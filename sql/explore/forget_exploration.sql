-- Forget why the last exploration ended, and what is of its search alone: another begins, and names its worlds by itself.
DELETE FROM meta WHERE key = 'stop_reason';
DROP TABLE IF EXISTS world;
DROP TABLE IF EXISTS world_node;
DROP TABLE IF EXISTS world_application;
DROP TABLE IF EXISTS world_choice;
DROP TABLE IF EXISTS universe_application;
DROP TABLE IF EXISTS tree_decision;
DROP TABLE IF EXISTS tree_node;
DROP TABLE IF EXISTS tree_rollout
