-- A class is weight-only if one of its kept e-nodes is foldable and has only weight-only operands, or none
-- (weights and constants). All others are computed in inference.
UPDATE eclass SET weight_only = NOT weight_only
WHERE weight_only IS DISTINCT FROM (id IN (SELECT unnest($classes)))
