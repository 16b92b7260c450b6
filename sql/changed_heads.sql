-- Heads of e-nodes written since a clock: only patterns with one of these can have new matches.
SELECT DISTINCT head FROM enode WHERE stamp >= $since AND NOT filtered
