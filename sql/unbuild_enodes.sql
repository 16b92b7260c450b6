DELETE FROM enode WHERE id IN (SELECT id FROM built WHERE application > $last)
