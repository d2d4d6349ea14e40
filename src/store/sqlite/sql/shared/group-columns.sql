-- All columns of a group (GroupRow in group.ts).
key, number, paused, maxActive, rateMax, rateMs, limitedUntil, windowEnds, windowUsed, place
