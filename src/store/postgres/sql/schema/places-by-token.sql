-- The place of a waiter is found by its token.
CREATE INDEX lock_places_by_token ON lock_places (queue, name, token);
