-- The same as claimed-arrays.sql for one row, measured by its data alone: adding up sizes takes 1 % of a call, and a large progress is
-- rare.
json_build_array(
  ARRAY[id], ARRAY[name], ARRAY[CASE WHEN octet_length(data) <= _inline THEN data END], ARRAY[opts], NULL, ARRAY[priority], NULL,
  ARRAY[timestamp], ARRAY[attempts_made], ARRAY[attempts_started], ARRAY[stalled_counter], ARRAY[processed_on], NULL, NULL, NULL,
  ARRAY[failed_reason], ARRAY[stacktrace], ARRAY[progress], ARRAY[fence], NULL, CASE WHEN extras IS NOT NULL THEN json_build_object(id, extras) END
)::text
