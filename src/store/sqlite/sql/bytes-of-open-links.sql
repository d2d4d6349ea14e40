-- Returns the bytes of the texts of links that are pending, failed or ignored.
SELECT coalesce(octet_length(text), 0)
-- include: open-links
