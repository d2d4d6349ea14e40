-- Returns a row if a session has a named lock or a place in line.
SELECT 1 WHERE EXISTS (SELECT 1 FROM named WHERE queue = :queue AND session = :session)
  OR EXISTS (SELECT 1 FROM places WHERE queue = :queue AND session = :session)
