-- Writes the number and the place of a group. Writing the whole row took twice as long.
UPDATE groups SET number = :number, place = :place, restsUntil = :restsUntil, level = :level WHERE queue = :queue AND key = :key
