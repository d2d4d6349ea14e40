-- Jobs in the claim order with a range of priorities.
-- States: 1 waiting.
FROM jobs WHERE queue = :queue AND state = 1 AND priority BETWEEN :least AND :most
