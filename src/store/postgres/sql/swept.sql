-- Returns the reply of a sweep.
-- Called by: reap.sql, sweep.sql.
CREATE FUNCTION swept(
  _stalled text[], _failed text[], _reaped int, _more boolean, _lost_by text[] DEFAULT NULL
) RETURNS text LANGUAGE sql STABLE AS $body$
SELECT json_build_object('stalled', _stalled, 'failed', _failed, 'reaped', _reaped, 'more', _more, 'lostBy', _lost_by)::text
$body$;
