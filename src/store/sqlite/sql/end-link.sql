-- Ends a pending link (LINK_STATES: 0 pending).
UPDATE links SET status = :to, text = :text WHERE
-- include: this-link
AND status = 0
