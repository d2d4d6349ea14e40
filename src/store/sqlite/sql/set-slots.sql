-- Changes the slots of a session.
UPDATE sessions SET slots = :slots WHERE queue = :queue AND id = :session AND slots <> :slots
