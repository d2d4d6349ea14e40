-- Runs the upkeep that sweep-look.sql has found due (sweep.ts).
SELECT upkeep(:queue, floor(clock_ms())::bigint)
