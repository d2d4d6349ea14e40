-- Columns of an active job whose lock ends without an outcome (HeldRow in record.ts).
-- include: left-columns
, stalledCounter
