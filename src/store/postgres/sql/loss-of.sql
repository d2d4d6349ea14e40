-- Returns LostBy, as JSON text, for a job that a session lost. Null if there is no session.
-- Called by: close-sessions.sql, reap.sql, sweep-ended.sql.
CREATE FUNCTION loss_of(_session sessions, _found text DEFAULT NULL) RETURNS text LANGUAGE sql STABLE AS $body$
SELECT '{"host":' || to_json((_session).host) || ',"pid":' || (_session).pid || ',"worker":' || to_json((_session).name)
  || ',"found":"' || coalesce(_found, CASE WHEN (_session).suspected THEN 'process-gone' ELSE 'session-expired' END) || '"}'
$body$;
