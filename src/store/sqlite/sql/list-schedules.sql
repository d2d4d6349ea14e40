-- Lists schedules by slot and then by id. A negative count has no limit.
SELECT
-- include: schedule-columns
FROM schedules WHERE queue = :queue ORDER BY at, id LIMIT :count + 0 OFFSET :skipped
