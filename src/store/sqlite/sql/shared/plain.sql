-- A job whose moves concern no other row: no key becomes free, and no mark asks for work. Fast paths are for these jobs alone.
marks = 0 AND
-- include: key
IS NULL
