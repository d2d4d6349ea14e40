-- Returns the reply of a claim.
-- Called by: claim-plain.sql, claim.sql, settle-children.sql, settle-groups.sql, settle-plain.sql, settle.sql, take.sql.
CREATE FUNCTION claim_reply(
  _jobs text, _alive boolean, _paused boolean, _limited bigint, _due bigint, _now bigint, _drained boolean,
  _more boolean DEFAULT false, _undone boolean DEFAULT false
) RETURNS text LANGUAGE sql STABLE AS $body$
SELECT '{"jobs":[' || coalesce(_jobs, '') || '],"alive":' || _alive || ',"paused":' || _paused || ',"limited":' || _limited
  || ',"next":' || coalesce(
    least(
      CASE WHEN NOT _paused AND _limited > 0 THEN _limited END,
        CASE WHEN _due > _now THEN _due - _now WHEN _due <= _now THEN 0 END
    )::text, 'null'
  ) || ',"drained":' || _drained || ',"more":' || coalesce(_more, false) || CASE WHEN _undone THEN ',"undone":true}' ELSE '}' END
$body$;
