-- Deletes the places that are no longer kept.
DELETE FROM places WHERE queue = :queue AND name = :name AND keptUntil <= :now
