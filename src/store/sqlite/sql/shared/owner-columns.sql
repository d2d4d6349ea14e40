-- Columns of a session that lost its locks (OwnerRow in lock.ts).
maxStalls, host, pid, name, suspected
