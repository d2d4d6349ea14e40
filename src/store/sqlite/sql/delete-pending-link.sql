-- Deletes a pending link (LINK_STATES: 0 pending).
DELETE FROM links WHERE
-- include: this-link
AND status = 0
