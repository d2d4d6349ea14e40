-- Releases some named locks of a session.
DELETE FROM named WHERE queue = :queue AND name IN
  (SELECT name FROM named WHERE queue = :queue AND session = :session LIMIT :count + 0)
