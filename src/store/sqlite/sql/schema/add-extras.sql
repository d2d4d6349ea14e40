-- Extras of a job (../marks.ts).
ALTER TABLE jobs ADD COLUMN extras TEXT;
