-- Grants the locks of neighbours in the table, with consecutive fences. One statement for a range of them takes 1.4 µs a job, one
-- statement that lists each of them 1.9 µs, and one statement per job 2.8 µs. CAST: a binding may pass numbers as REAL.
UPDATE jobs SET
-- include: taken
, fence = job + CAST(:fence AS INTEGER) WHERE job BETWEEN :first AND :last
