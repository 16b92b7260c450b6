-- Forget the estimates of signatures that are about to get a cost that was asked for.
DELETE FROM cost WHERE source = $provisional AND signature IN (SELECT unnest($signatures))
