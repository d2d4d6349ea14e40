-- Columns that a claim needs of a job of a group (MemberRow in record.ts).
-- include: waiting-columns
, ord
