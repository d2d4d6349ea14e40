-- Returns an empty row of the journal, in which a call gathers its changes.
-- Called by: many.
CREATE FUNCTION no_change(_queue int) RETURNS journal LANGUAGE plpgsql AS $body$
BEGIN
  RETURN ROW (_queue, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL)::journal;
END
$body$;
