-- The oldest of equal e-nodes stays: so the original graph does, whichever subgraph is shown.
UPDATE congruent SET kept = h.oldest FROM hidden_oldest AS h WHERE h.kept = congruent.kept
