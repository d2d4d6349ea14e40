-- Returns the bytes of the texts of links.
SELECT coalesce(octet_length(text), 0)
-- include: links-of-states
