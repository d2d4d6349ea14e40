-- Keeps the job _n as the draft of its entry. The entry then has no end, so that the draft is not lost before the owner ends.
UPDATE dedup
SET until = NULL, draft = json_build_array(
  _ids[_n], _names[_n], _data[_n], _opts[_n], _priorities[_n], _delays[_n], _lifos[_n], _timestamps[_n], _keys[_n],
  _marks[_n], _extras[_n]
)
WHERE queue = _queue AND id = _dedups[_n]::json ->> 'id';
