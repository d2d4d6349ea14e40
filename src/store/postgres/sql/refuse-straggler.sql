-- Refuses a call that arrived after a later call of its caller.
-- Called by: add.sql, settle.sql.
-- RAISED.straggler = HF001
CREATE FUNCTION refuse_straggler(_caller text, _seq bigint, _last bigint) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  RAISE EXCEPTION 'Call % of % came after its call %: number calls upwards.', _seq, _caller, _last USING ERRCODE = 'HF001';
END
$body$;
