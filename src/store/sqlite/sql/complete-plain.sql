-- Completes a plain job: 3.4 µs a job, 3.0 µs if the row number were known. One statement for all jobs, with pairs of id and fence as
-- JSON, took 2.6 µs, but works only for jobs with the same value that end in the order of their fences. Reading all owners in one
-- statement and updating the rows in another took 17 % less, which is 4 % of the total cost of a job.
-- include: completed
AND
-- include: plain
