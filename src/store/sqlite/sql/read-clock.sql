-- Reads the clock of the last boot.
SELECT boot, offset FROM clock
