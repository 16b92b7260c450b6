-- Drop the large tables that a step has worked with: rows held until the next one fills them are held twice.
DROP TABLE IF EXISTS match;
DROP TABLE IF EXISTS application;
DROP TABLE IF EXISTS fresh;
DROP TABLE IF EXISTS union_pair;
DROP TABLE IF EXISTS congruent;
DROP TABLE IF EXISTS moved
