-- The session that lost the job last.
ALTER TABLE jobs ADD COLUMN lostBy TEXT;
