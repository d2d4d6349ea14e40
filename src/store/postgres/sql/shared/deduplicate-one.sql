-- Looks for the owner of the deduplication id of job _n. If there is one, the job is dropped or kept as a draft, and the loop goes on.
IF _dedups[_n] IS NOT NULL THEN
  _found := deduplicate(_queue, _clock, _id, _dedups[_n]::json, _change);
  _change := _found._change;
  IF _found._owner IS NOT NULL THEN
    _chosen[_n] := _found._owner;
    _dropped := _dropped || _n;
    IF _found._kept THEN
      -- include: keep-draft
    END IF;
    CONTINUE;
  END IF;
END IF;
