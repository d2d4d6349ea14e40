-- Sets _entering: the groups of the jobs that are to wait. These jobs get the state of waiting jobs of groups (_lanes), and the keys of
-- their groups (_held).
-- States: -2 grouped.
-- MARK.key = 1
IF (SELECT bool_or(mark & 1 > 0) FROM unnest(_marks) mark) THEN
  PERFORM be_grouped(_queue);
  SELECT array_agg(member ORDER BY n), array_agg(coalesce(member, _keys[n]) ORDER BY n),
    array_agg(CASE WHEN member IS NULL THEN _lanes[n] ELSE -2 END ORDER BY n)
  INTO _entering, _held, _lanes
  FROM (
    SELECT n, CASE WHEN mark & 1 > 0 AND coalesce(_delays[n], 0) <= 0 THEN extra::json ->> 'g' END AS member
    FROM unnest(_marks, _extras) WITH ORDINALITY o(mark, extra, n)
  ) o;
  IF array_remove(_entering, NULL) = '{}' THEN _entering := NULL; END IF;
END IF;
