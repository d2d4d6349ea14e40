-- The second part of the fast path of deliveries (see plain-deliver.lua): lets the parents wait whose last child has ended, as `releaseParent`
-- in arrivals.lua does.
if #moved > 0 then
  local places = {}
  for i = 1, #moved do
    front, places[2 * i] = front - 1, moved[i]
    places[2 * i - 1], told[3 * i - 2], told[3 * i - 1], told[3 * i] = format(DIGITS, front), 'W', moved[i], 'waiting-children'
  end
  call('ZREM', base .. ':waiting-children', unpack(moved))
  call('HSET', base .. ':run', unpack(runs))
  call('ZADD', base .. ':wait', unpack(places))
  if call('EXISTS', base .. ':waiting-children') == 0 then call('UNLINK', base .. ':kin') end
  events, offers, reply = #moved, true, { plainTaken, plainDone and 0 or 1 }
elseif plainDone then
  return { plainTaken, 0 }
end
