-- What became of a candidate.
UPDATE candidate SET status = $status, note = $note WHERE id = $id
