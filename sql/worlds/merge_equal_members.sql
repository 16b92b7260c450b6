-- Of a world's members that are equal, the one that stays has the first one's place and reason.
INSERT INTO world_node
SELECT world, kept, min(place), arg_min(application, place) FROM equal_member GROUP BY world, kept
