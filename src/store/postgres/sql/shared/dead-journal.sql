-- Measures the walk through the dead rows of the journal. Sets from where on it is read, and which transactions write to it.
_read := pg_stat_get_xact_tuples_returned('journal_pkey'::regclass);
PERFORM FROM journal WHERE queue = _queue ORDER BY number LIMIT 1;
IF pg_stat_get_xact_tuples_returned('journal_pkey'::regclass) - _read >= 500 THEN
  _any := true;
  _journal_from := CASE WHEN _passed THEN _old.journal_number + 1 ELSE coalesce(_old.journal_from, 0) END;
  _writers := ARRAY(
    SELECT DISTINCT virtualtransaction FROM pg_locks
    WHERE locktype = 'relation' AND relation = 'journal'::regclass
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  );
ELSE
  _number := 0;
END IF;
