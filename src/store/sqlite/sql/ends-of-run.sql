-- Returns the rows of the first and the last job of a run.
SELECT a.job, b.job FROM jobs AS a CROSS JOIN jobs AS b WHERE a.queue = :queue AND a.id = :first AND b.queue = a.queue AND b.id = :last
