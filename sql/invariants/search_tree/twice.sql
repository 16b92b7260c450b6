-- An application that is there twice.
SELECT instance, sources FROM universe_application WHERE state <> 'rejected' GROUP BY instance, sources HAVING count(*) > 1
