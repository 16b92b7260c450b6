DELETE FROM application WHERE id > $last
