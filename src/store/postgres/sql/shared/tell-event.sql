-- Adds the event of a user to _change, behind the events of the writes before it.
-- include: tell-progress
_change.events := _change.events + 1;
_change.body := concat_ws(',', _change.body, event(_one.event, NULL, json_build_object('args', _one.said)));
