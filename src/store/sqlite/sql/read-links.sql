-- Reads links of a parent.
SELECT childQueue, child, status, text
-- include: links-of-states
