-- Reads the numbers of the last turn, and of the last turn of a job without a group.
SELECT last, plain FROM turns WHERE queue = :queue
