-- Returns the numbers of a parent's links, if the job is a parent (MARK.parent = 4). A process of an older version may have removed the
-- parent without its links.
SELECT pending, processed, failed, ignored FROM families WHERE queue = :queue AND id = :parent
  AND EXISTS (SELECT 1 FROM jobs WHERE jobs.queue = families.queue AND jobs.id = families.id AND marks & 4 <> 0)
