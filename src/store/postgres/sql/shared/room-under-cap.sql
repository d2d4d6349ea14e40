-- Limits _room to the cap. All claims of the queue wait here for one another, so that each counts what the others have taken.
_room := least(
  _room, room_under_cap(_queue, _session, _row.max_active, (SELECT active FROM counts_of(_queue)) + _change.active, _now)
);
