-- Returns the completed rows of a run by their new `ord`, which no other row has.
-- States: 4 completed.
SELECT job FROM jobs WHERE job BETWEEN :first AND :last AND queue = :queue AND state = 4 AND ord = job + :place
