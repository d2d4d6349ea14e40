-- Deletes some places in line of a session.
DELETE FROM places WHERE queue = :queue AND place IN
  (SELECT place FROM places WHERE queue = :queue AND session = :session LIMIT :count + 0)
