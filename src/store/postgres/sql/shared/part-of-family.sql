-- Sets _part: the values of the jobs _one.ns.
SELECT array_agg(_ids[n] ORDER BY i) AS ids, array_agg(_names[n] ORDER BY i) AS names, array_agg(_data[n] ORDER BY i) AS data,
  array_agg(_opts[n] ORDER BY i) AS opts, array_agg(_priorities[n] ORDER BY i) AS priorities,
  array_agg(_delays[n] ORDER BY i) AS delays, array_agg(_lifos[n] ORDER BY i) AS lifos,
  array_agg(_timestamps[n] ORDER BY i) AS timestamps,
  CASE WHEN count(_keys[n]) > 0 THEN array_agg(_keys[n] ORDER BY i) END AS keys, array_agg(_marks[n] ORDER BY i) AS marks,
  array_agg(_extras[n] ORDER BY i) AS extras
INTO _part FROM unnest(_one.ns) WITH ORDINALITY o(n, i);
