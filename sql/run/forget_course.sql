-- The course of a run is written again where it extracts again.
DELETE FROM run_event;
DELETE FROM time_spent
