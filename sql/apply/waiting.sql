-- Applications that wait for their turn.
CREATE OR REPLACE TEMP TABLE waiting AS
SELECT row_number() OVER (ORDER BY id)::INTEGER AS position, * FROM application
