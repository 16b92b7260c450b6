-- What any world has is extracted from; not what saturation had before them.
UPDATE enode SET filtered = id NOT IN (SELECT enode FROM world_node)
