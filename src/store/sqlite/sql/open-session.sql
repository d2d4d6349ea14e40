-- Opens a session. Changes nothing if its id exists.
INSERT INTO sessions (queue, id, host, pid, name, instance, presence, slots, graceMs, durationMs, maxStalls, since, expiresAt)
VALUES (:queue, :id, :host, :pid, :name, :instance, :presence, :slots, :graceMs, :durationMs, :maxStalls, :now, :expiresAt)
ON CONFLICT DO NOTHING
