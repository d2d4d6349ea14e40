-- Fast path for most deliveries within one slot, in a straight line as in plain-settle.lua: ends of children that move no parent. It takes
-- messages from the front of the outbox, and leaves the first one that does not fit, with all that follow, to deliver.lua.
-- The links have the form that family-ends.lua describes.
-- plainTaken: the messages that were taken. plainDone: nothing is left.
local plainTaken, plainDone = 0, false
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
      local p, d, f, i = unpack(call('HMGET', links, '#p', '#d', '#f', '#i'))
      counts = p and { p = tonumber(p), d = tonumber(d), f = tonumber(f), i = tonumber(i) }
    end
    local field = sender .. '\n' .. child
    local before, itsBond, itsNumber = match(counts and call('HGET', links, field) or '', '^(%a),([^,]*),(%d*)')
    -- The last pending child may move its parent.
    fits = before == 'p' and counts.p > 1 and itsBond == bond and tonumber(itsNumber) < tonumber(number)
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
if plainDone then return { plainTaken, 0 } end
