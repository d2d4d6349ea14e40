-- Jobs that wait or are delayed since a moment or longer. A job that ran counts from its last start. `passed`: the marks of jobs that
-- are passed over. `letters`: 1 for letters alone.
AND coalesce(processedOn, addedAt) <= :latest AND marks & :passed = 0 AND (:letters = 0 OR json_extract(extras, '$.o') IS NOT NULL)
