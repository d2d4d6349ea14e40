-- Writes the extras of a row, and clears and sets some of its marks.
UPDATE jobs SET marks = marks & ~:cleared | :added, extras = :extras WHERE job = :job
