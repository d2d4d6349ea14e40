-- Returns the events of a row without their long values.
-- Called by: trim-bytes.sql.
-- SHORT_VALUE_BYTES = 256
CREATE FUNCTION light_body(_body text) RETURNS text LANGUAGE plpgsql AS $body$
BEGIN
  RETURN (
    SELECT string_agg(
      CASE WHEN json_typeof(g->2->field) = 'array' THEN json_build_array(
        g->0, g->1,
        (
          SELECT json_build_object(
            field, json_agg(CASE WHEN octet_length(v) <= 256 THEN v END ORDER BY n), 'large',
            json_agg(CASE WHEN v IS NULL OR octet_length(v) > 256 THEN 1 END ORDER BY n)
          )
          FROM json_array_elements_text(g->2->field) WITH ORDINALITY e(v, n)
        )
      )::text ELSE g::text END, ','
      ORDER BY i
    )
    FROM (
      SELECT g, i, CASE g->>0 WHEN 'completed' THEN 'returnvalue' WHEN 'progress' THEN 'data' END AS field
      FROM json_array_elements(('[' || _body || ']')::json) WITH ORDINALITY t(g, i)
    ) groups
  );
END
$body$;
