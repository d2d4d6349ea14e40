-- Jobs behind another job of their key, with a range of priorities.
-- States: 0 behind.
FROM jobs WHERE queue = :queue AND state = 0 AND priority BETWEEN :least AND :most
