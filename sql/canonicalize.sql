-- Write the canonical values back; the stamp makes these rows new to the matcher.
UPDATE enode
SET class = touched.class, c0 = touched.c0, c1 = touched.c1, c2 = touched.c2, c3 = touched.c3,
    c4 = touched.c4, stamp = $stamp
FROM touched WHERE enode.id = touched.id
