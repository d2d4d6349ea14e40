-- Grants a named lock.
INSERT OR REPLACE INTO named (queue, name, token, session, fence, since) VALUES (:queue, :name, :token, :session, :fence, :now)
