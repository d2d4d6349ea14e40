-- The store's clock: epoch ms with fractions. Callers round the present down and expiries up, so that nothing expires early.
-- Called by: many.
CREATE FUNCTION clock_ms() RETURNS double precision LANGUAGE sql VOLATILE AS $body$
SELECT date_part('epoch', clock_timestamp()) * 1000
$body$;
