-- What a notice says. Null: the lock was taken away. An older version takes each notice for that.
ALTER TABLE revocations ADD COLUMN kind TEXT;
