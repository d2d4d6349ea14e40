-- Writes the clock of this boot.
INSERT OR REPLACE INTO clock (only, boot, offset) VALUES (1, :boot, :offset)
