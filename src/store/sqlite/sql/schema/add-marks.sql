-- Marks of a job (../marks.ts).
ALTER TABLE jobs ADD COLUMN marks INTEGER NOT NULL DEFAULT 0;
