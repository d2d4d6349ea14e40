-- Records a row of move-one.sql or move-outcomes.sql.
_done := _done || _group.ns;
-- Before the retention, which may remove the jobs.
IF _group.kin IS NOT NULL THEN PERFORM send_ends(_queue, _group.kin, _group.kin_gone); END IF;
_change := book(
  _queue, _clock, _group.kind, _group.jobs, _group.plain, _group.kept, _group.most, _group.age, _group.ids, _group.said,
  _group.delays, _group.attempts, _change, _group.removed
);
_keys := _keys || _group.keys;
_groups := _groups || _group.groups;
_entered := _entered || _group.entered::text[];
_logged := _logged || _group.logged;
_marked := _marked || _group.marked;
_extras := _extras || _group.extras;
