-- Gives a group another number in line. Writing the whole row touches every index of the table.
UPDATE groups SET number = :number WHERE queue = :queue AND key = :key
