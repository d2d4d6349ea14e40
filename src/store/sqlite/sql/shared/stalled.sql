-- Counts a stall, and records the session that lost the job.
stalledCounter = stalledCounter + 1, lostBy = :lostBy
