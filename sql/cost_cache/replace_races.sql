-- Forget the outcomes of races of some models on one device: others take their place.
DELETE FROM race_outcome
WHERE model IN (SELECT unnest($model::VARCHAR[]))
    AND kind = $kind AND device = $device AND driver = $driver AND libraries = $libraries AND protocol = $protocol
