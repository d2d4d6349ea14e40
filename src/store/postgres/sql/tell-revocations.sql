-- Numbers revocations and other notices under the lock of the session. A notice that commits later gets a later number, so none is missed.
-- _kinds: the session knows the kinds of notices. An older version would take each for a revocation, so it gets no others.
-- Called by: renew-one.sql, renew.sql.
CREATE FUNCTION tell_revocations(_queue int, _session text, _acked bigint, _kinds boolean) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  _last bigint;
  _reply text;
BEGIN
  DELETE FROM revocations WHERE queue = _queue AND session = _session AND (number <= _acked OR NOT _kinds AND kind <> 'revoked');
  SELECT revoked INTO _last FROM sessions WHERE queue = _queue AND id = _session;
  WITH fresh AS MATERIALIZED (
    SELECT ctid AS at, row_number() OVER (ORDER BY told_as) AS nth FROM revocations
    WHERE queue = _queue AND session = _session AND number IS NULL
  ), numbered AS (UPDATE revocations v SET number = _last + fresh.nth FROM fresh WHERE v.ctid = fresh.at RETURNING number)
  SELECT max(number) INTO _last FROM numbered;
  IF _last IS NOT NULL THEN UPDATE sessions SET revoked = _last WHERE queue = _queue AND id = _session; END IF;
  SELECT json_agg(json_build_array(number, job, fence, reason, kind) ORDER BY number) INTO _reply FROM revocations
  WHERE queue = _queue AND session = _session;
  RETURN coalesce(_reply, '[]');
END
$body$;
