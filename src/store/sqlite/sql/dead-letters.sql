-- Dead letters.

-- name: finished-letters
-- Returns the letters of a finished state that finished first.
SELECT
-- include: left-columns
, finishedOn
-- include: finished-jobs
AND json_extract(extras, '$.o') IS NOT NULL ORDER BY ord LIMIT :count + 0
