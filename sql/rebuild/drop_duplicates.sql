-- Of equal e-nodes one stays.
DELETE FROM enode USING congruent
WHERE enode.signature = congruent.signature AND enode.c0 = congruent.c0 AND enode.c1 = congruent.c1
    AND enode.c2 = congruent.c2 AND enode.c3 = congruent.c3 AND enode.c4 = congruent.c4
    AND enode.id <> congruent.kept
