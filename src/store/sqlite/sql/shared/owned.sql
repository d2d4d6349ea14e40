-- The update itself checks the owner: it finds the row only under the current token.
-- States: 3 active.
queue = :queue AND id = :id AND state = 3 AND session = :session AND fence = :fence
