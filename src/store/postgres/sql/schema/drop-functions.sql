-- Drops all functions in the schema: the schema belongs to Holdfast alone. Every migration creates them anew.
DO $do$
DECLARE
  _function regprocedure;
BEGIN
  FOR _function IN SELECT oid FROM pg_proc WHERE pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) LOOP
    EXECUTE 'DROP FUNCTION ' || _function || ' CASCADE';
  END LOOP;
END $do$
