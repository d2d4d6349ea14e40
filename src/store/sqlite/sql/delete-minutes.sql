-- Deletes the minutes before one.
DELETE FROM metrics WHERE queue = :queue AND kind = :kind AND minute < :minute
