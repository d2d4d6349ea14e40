-- Returns the state of a link.
SELECT status FROM links WHERE
-- include: this-link
