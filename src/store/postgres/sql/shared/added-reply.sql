-- Sets _reply: the ids of the jobs, and which of them are new. A run of counted ids, which is what most calls get, is told by its two ends.
IF _ids IS NULL AND _made IS NULL AND _chosen[cardinality(_chosen)]::bigint - _chosen[1]::bigint = cardinality(_chosen) - 1 THEN
  _reply := json_build_object('first', _chosen[1]::bigint, 'count', cardinality(_chosen));
ELSE
  _reply := json_build_object('ids', _chosen, 'made', _made);
END IF;
