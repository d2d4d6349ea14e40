-- Ends the timed locks of an earlier boot.
UPDATE jobs SET endsAt = 0 WHERE endsAt IS NOT NULL
