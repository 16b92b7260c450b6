-- Conjunctions of one or two words that no failing example fulfils: those that most others fulfil come first.
SELECT a.word, b.word
FROM word_holds AS a JOIN word_holds AS b ON a.example = b.example AND a.word <= b.word
GROUP BY a.word, b.word
HAVING NOT bool_or(NOT a.holds) AND count(*) >= $least
ORDER BY count(*) DESC, a.word <> b.word, a.word, b.word
LIMIT $most
