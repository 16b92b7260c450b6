-- The original model
-- The graph that was loaded, so that the file alone can explain and compute it.

CREATE TABLE original_node (enode INTEGER NOT NULL, signature INTEGER NOT NULL, children INTEGER[] NOT NULL);
COMMENT ON TABLE original_node IS
'The e-nodes of the original graph as they were loaded, operands first, before equal ones became one.';
COMMENT ON COLUMN original_node.enode IS 'Key: e-node, and class, by its first id; eclass.parent gives its canonical one.';
COMMENT ON COLUMN original_node.signature IS 'Joins signature.id.';
COMMENT ON COLUMN original_node.children IS 'Operands, filled up with zeros to five; each joins original_node.enode.';

CREATE TABLE original_weight (name VARCHAR NOT NULL, data BLOB NOT NULL);
COMMENT ON TABLE original_weight IS
'Weights that are no parameters but sizes, indices, scales and the like; all others are as good as random ones.';
COMMENT ON COLUMN original_weight.name IS 'Key: name of the weight; as original_value.name.';
COMMENT ON COLUMN original_weight.data IS 'Its elements in C order, little-endian, of the type that it is declared with.';

CREATE TABLE original_value (name VARCHAR NOT NULL, enode INTEGER NOT NULL, node_name VARCHAR NOT NULL);
COMMENT ON TABLE original_value IS 'Which e-node computes which named value of the original graph.';
COMMENT ON COLUMN original_value.name IS 'Key: name of the value.';
COMMENT ON COLUMN original_value.enode IS 'Joins original_node.enode, and eclass.id.';
COMMENT ON COLUMN original_value.node_name IS 'Name of the node; empty for inputs and weights.';

CREATE TABLE graph_output (position INTEGER NOT NULL, name VARCHAR NOT NULL, class INTEGER NOT NULL);
COMMENT ON TABLE graph_output IS 'What the graph returns.';
COMMENT ON COLUMN graph_output.position IS 'Key: place among the outputs, from 0 on.';
COMMENT ON COLUMN graph_output.name IS 'Name of the output; as original_value.name.';
COMMENT ON COLUMN graph_output.class IS 'Its class, by its first id; joins eclass.id.';
