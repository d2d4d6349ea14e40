-- Returns what schema.ts checks before it uses a server: version, whether it takes writes, encoding, isolation, the number of the process
-- that serves the connection, and the names for error messages.
SELECT current_setting('server_version_num')::int,
  pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on',
  current_setting('server_encoding'), current_setting('transaction_isolation'),
  pg_backend_pid(), current_database(), current_user
