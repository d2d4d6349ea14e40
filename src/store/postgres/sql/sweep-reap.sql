-- Hands back what sweep-look.sql has found (sweep.ts).
SELECT reap(:queue, clock_ms(), :limit, :any_ended, :any_renewed), has_sent()
