-- Removes the unlocked jobs of some states.
-- Processes of earlier versions call these two. They name states, where waiting jobs have any priority.
-- Called by: older versions.
-- States: 1 waiting.
CREATE FUNCTION clear_jobs(_name text, _states smallint[], _age float8, _limit int) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  RETURN to_json(
    clear_lists(
      (SELECT queue FROM queues WHERE name = _name),
      ARRAY(
        SELECT list FROM unnest(_states) WITH ORDINALITY o(state, n),
          unnest(
            CASE WHEN state = 1 THEN '{waiting,prioritized}'
              ELSE ARRAY[('{waiting,delayed,active,completed,failed}'::text[])[state]] END
          ) list
        ORDER BY n
      ), _age, _limit
    )
  );
END
$body$;
