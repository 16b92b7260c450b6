-- The unions that a phase asks for, by the round in which they are carried out.
CREATE OR REPLACE TEMP TABLE union_pair (round INTEGER, rule INTEGER, a INTEGER, b INTEGER)
