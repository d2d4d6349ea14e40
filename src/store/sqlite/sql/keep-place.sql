-- Keeps a place for longer.
UPDATE places SET keptUntil = :keptUntil WHERE place = :place
