-- Fast path for most deliveries within one slot, in a straight line as in plain-settle.lua: ends of children that leave their parent where
-- it is, or let it wait in front of all jobs. It takes messages from the front of the outbox, and leaves the first one that does not fit,
-- with all that follow, to deliver.lua: in the same call if no parent has moved, else in the next one.
-- The links have the form that family-ends.lua describes.
-- plainTaken: the messages that were taken. plainDone: nothing is left. moved: the parents that wait now. runs: their ids and run texts.
local plainTaken, plainDone, reply, told, events, offers, moved, runs = 0, false, nil, {}, 0, false, {}, {}
local AWAITS = '^$run{state..priority state=P timed=%d ord= delay=0 priority=0 *=%d*},[%d,]*%z[^%z]*%z[^%z]*$'
if ARGV[3] ~= '' then
  local stream, sender, most = ARGV[3] .. ':outbox:' .. ARGV[1], ARGV[2], tonumber(ARGV[4])
  local last, lastParent, links, counts, fits = nil, nil, nil, nil, true
  -- Messages that add jobs are large, so the first message is read alone.
  local messages = call('XRANGE', stream, '-', '+', 'COUNT', 1)
  if messages[1] and messages[1][2][2]:sub(1, 2) == 'c\0' then messages = call('XRANGE', stream, '-', '+', 'COUNT', math.min(most, 100)) end
  for i = 1, #messages do
    local number, body = messages[i][1]:sub(1, -3), messages[i][2][2]
    local parent, bond, child, state, text = match(body, '^c%z([^%z]*)%z([^%z]*)%z([^%z]*)%z([dfi])w0%z(.*)$')
    if not parent then break end
    if parent ~= lastParent then
      if counts then call('HSET', links, '#p', counts.p, '#d', counts.d, '#f', counts.f, '#i', counts.i) end
      lastParent, links = parent, base .. ':links:' .. parent
      local p, d, f, i, h = unpack(call('HMGET', links, '#p', '#d', '#f', '#i', '#h'))
      counts = p and { p = tonumber(p), d = tonumber(d), f = tonumber(f), i = tonumber(i), isHeld = tonumber(h or 0) > 0 }
    end
    local field = sender .. '\n' .. child
    local before, itsBond, itsNumber = match(counts and call('HGET', links, field) or '', '^(%a),([^,]*),(%d*)')
    fits = before == 'p' and counts.p > 0 and itsBond == bond and tonumber(itsNumber) < tonumber(number)
    if fits and counts.p == 1 and not counts.isHeld then
      local run = call('HGET', base .. ':run', parent)
      fits = run and match(run, AWAITS)
      if fits then
        moved[#moved + 1] = parent
        runs[#runs + 1] = parent
        runs[#runs + 1] = 'W' .. run:sub(2)
      end
    end
    if not fits then break end
    counts.p, counts[state] = counts.p - 1, counts[state] + 1
    call('HSET', links, field, state .. ',' .. bond .. ',' .. number .. '\0' .. text)
    plainTaken, last = i, number
  end
  if last then
    if counts then call('HSET', links, '#p', counts.p, '#d', counts.d, '#f', counts.f, '#i', counts.i) end
    call('XTRIM', stream, 'MINID', last .. '-1')
  end
  -- With fewer messages than the script has asked for, the outbox is empty.
  if plainTaken == #messages and plainTaken < math.min(most, 100) then
    call('UNLINK', stream)
    call('ZREM', ARGV[3] .. ':outbox', ARGV[1])
    plainDone = true
  end
end
