-- Found rules, those that save most first.
SELECT f.candidate, f.text, f.evidence, f.trials, c.gain, c.models, c.saves_us
FROM found_rule AS f JOIN candidate AS c ON c.id = f.candidate
ORDER BY c.gain DESC, c.saves_us DESC, c.id
