-- Reads links of a parent that are pending, failed or ignored.
SELECT childQueue, child, status, text
-- include: open-links
