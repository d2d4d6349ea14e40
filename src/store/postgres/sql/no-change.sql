-- Returns an empty row of the journal, in which a call gathers its changes. _minute: the minute of the jobs that it finishes, if they count.
-- Without it, the sums of finished jobs stay null.
-- Called by: many.
CREATE FUNCTION no_change(_queue int, _minute int DEFAULT NULL) RETURNS journal LANGUAGE plpgsql AS $body$
BEGIN
  RETURN ROW (_queue, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, _minute, _minute * 0, _minute * 0, NULL)::journal;
END
$body$;
