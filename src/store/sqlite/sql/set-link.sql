-- Changes the state of a link.
UPDATE links SET status = :to, text = :text WHERE
-- include: this-link
