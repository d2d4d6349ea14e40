-- Jobs of a group in one state. Their key begins with a byte that no text has, so it is no lock key of a user. An older version cannot
-- pass this byte on, so it finds no first job of the key, and claims no job of a group.
FROM jobs WHERE jobs.queue = :queue AND
-- include: key
= x'ff' || :group AND state = :state
