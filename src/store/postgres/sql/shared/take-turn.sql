-- Gives the turn to the group _g.
_order := _order || _g;
_last := _base + cardinality(_order);
IF _g = _next THEN _next := _next + 1; ELSE _next_again := _next_again + 1; END IF;
_took[_g] := _took[_g] + 1;
_waits[_g] := _waits[_g] - 1;
_rooms[_g] := _rooms[_g] - 1;
_turns[_g] := CASE WHEN _waits[_g] > 0 THEN _last END;
IF _waits[_g] > 0 AND _rooms[_g] > 0 THEN _again := _again || _g; END IF;
