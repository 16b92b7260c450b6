"""μGraphs: tensors whose dims carry index variables, operators, three levels of graphs."""
