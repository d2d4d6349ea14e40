-- Packs the jobs of `listed` into _reply, as far as they fit into a reply of _budget bytes, of which _used are used, and of _most jobs:
-- an array per column of JobArrays in record.ts, and whether the list was cut. Without rows, everything is null.
-- The server knows the size of a text without reading it.
, sized AS (
  SELECT *,
    coalesce(octet_length(data) + coalesce(octet_length(progress), 0) + coalesce(octet_length(returnvalue), 0), 0) AS size
  FROM listed
), fitting AS (
  SELECT *, nth <= _most AND (upto + _used <= _budget OR (upto = size AND _used = 0)) AS fits FROM (
    SELECT *, sum(size) OVER (ROWS UNBOUNDED PRECEDING) AS upto, row_number() OVER (ROWS UNBOUNDED PRECEDING) AS nth FROM sized
  ) j
)
SELECT json_build_array(
  array_agg(id) FILTER (WHERE fits), array_agg(name) FILTER (WHERE fits),
  array_agg(CASE WHEN size <= _inline THEN data END) FILTER (WHERE fits), array_agg(opts) FILTER (WHERE fits),
  array_agg(state) FILTER (WHERE fits), array_agg(priority) FILTER (WHERE fits), array_agg(delay) FILTER (WHERE fits),
  array_agg(timestamp) FILTER (WHERE fits), array_agg(attempts_made) FILTER (WHERE fits),
  array_agg(attempts_started) FILTER (WHERE fits), array_agg(stalled_counter) FILTER (WHERE fits),
  array_agg(processed_on) FILTER (WHERE fits), array_agg(finished_on) FILTER (WHERE fits),
  array_agg(processed_by) FILTER (WHERE fits), array_agg(CASE WHEN size <= _inline THEN returnvalue END) FILTER (WHERE fits),
  array_agg(failed_reason) FILTER (WHERE fits), array_agg(stacktrace) FILTER (WHERE fits),
  array_agg(CASE WHEN size <= _inline THEN progress END) FILTER (WHERE fits), array_agg(fence) FILTER (WHERE fits),
  array_agg(lost_by) FILTER (WHERE fits), json_object_agg(id, extras) FILTER (WHERE fits AND extras IS NOT NULL), bool_or(NOT fits)
)::text INTO _reply FROM fitting;
