-- The unions of the phase that is running, by the round in which they are carried out: none yet.
CREATE OR REPLACE TEMP TABLE union_pair (
    round INTEGER, rule INTEGER, a INTEGER, b INTEGER, instance INTEGER, source INTEGER, bindings INTEGER[]
)
