-- use: clock records
-- ARGV: ids. Answers their records.
return records(ARGV)
