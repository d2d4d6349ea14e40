-- Packs claimed jobs: an array per column of JobArrays in record.ts. Null stands for columns that are the same in all jobs of a claim, or
-- never set.
json_build_array(
  array_agg(id), array_agg(name), array_agg(CASE WHEN size <= _inline THEN data END), array_agg(opts), NULL, array_agg(priority),
  NULL, array_agg(timestamp), array_agg(attempts_made), array_agg(attempts_started), array_agg(stalled_counter),
  array_agg(processed_on), NULL, NULL, NULL, array_agg(failed_reason), array_agg(stacktrace),
  array_agg(CASE WHEN size <= _inline THEN progress END), array_agg(fence), NULL,
  json_object_agg(id, extras) FILTER (WHERE extras IS NOT NULL)
)::text
