-- Replaces the functions of the schema, which belongs to Holdfast alone, by those of this version: the setting holdfast.functions has their
-- texts by name. If only its body is new, a function keeps its oid, so that a plan which another connection makes during the migration
-- stays valid. A function that cannot be replaced is dropped first.
DO $do$
DECLARE
  _texts jsonb := current_setting('holdfast.functions');
  _here oid := quote_ident(current_schema())::regnamespace;
  _function record;
  _old regprocedure;
  _can_replace boolean;
BEGIN
  FOR _old IN SELECT oid FROM pg_proc WHERE pronamespace = _here AND NOT _texts ? proname LOOP
    EXECUTE 'DROP FUNCTION ' || _old || ' CASCADE';
  END LOOP;
  FOR _function IN
    SELECT t.key AS name, t.value AS text, ARRAY(SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = _here AND proname = t.key) AS olds
    FROM jsonb_each_text(_texts) t
  LOOP
    _can_replace := true;
    BEGIN
      EXECUTE regexp_replace(_function.text, '^CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION', 'n');
      -- With other types of parameters, there are two functions of this name now.
      CONTINUE WHEN (SELECT count(*) FROM pg_proc WHERE pronamespace = _here AND proname = _function.name) = cardinality(_function.olds);
    EXCEPTION
      -- The names of its parameters, or the type that it returns, are new.
      WHEN invalid_function_definition THEN _can_replace := false;
    END;
    FOREACH _old IN ARRAY _function.olds LOOP EXECUTE 'DROP FUNCTION ' || _old || ' CASCADE'; END LOOP;
    IF NOT _can_replace THEN EXECUTE _function.text; END IF;
  END LOOP;
END $do$
