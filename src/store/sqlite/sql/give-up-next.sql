-- Clears the mark of a next job (MARK.next = 16), so that it is an ordinary job.
UPDATE jobs SET marks = marks & ~16 WHERE queue = :queue AND id = :id
