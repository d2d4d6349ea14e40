-- A part of the fast path (see plain-settle.lua): tells the parents of completed children. It follows plain-reply.lua, because the numbers
-- of messages are ticks behind those of the call. One number serves all links that one call changes.
if reply and ends then
  local own, sent, number, receivers = ARGV[16 + 3 * size] .. '\n', {}, nil, {}
  tick = tick + 1
  number = format(DIGITS, tick)
  for i = 1, #ends do
    local one = ends[i]
    local ids, bonds, values, fields, writes = one.ids, one.bonds, one.values, { '#p', '#d' }, {}
    for n = 1, one.links and #ids or 0 do fields[n + 2] = own .. ids[n] end
    local found = one.links and call('HMGET', one.links, unpack(fields)) or fields
    local pending, processed, lastBond, fresh, before = tonumber(found[1]) or 0, tonumber(found[2]), nil, nil, nil
    for n = 1, #ids do
      if bonds[n] ~= lastBond then
        lastBond = bonds[n]
        fresh, before = 'p,' .. lastBond .. ',0\0', 'd,' .. lastBond .. ',' .. number .. '\0'
      end
      if pending > 1 and found[n + 2] == fresh then
        pending, processed = pending - 1, processed + 1
        writes[#writes + 1] = fields[n + 2]
        writes[#writes + 1] = before .. values[n]
      else
        tick = tick + 1
        if not sent[one.queue] then
          sent[one.queue], receivers[#receivers + 1] = true, one.queue
          call('ZADD', base .. ':outbox', 'NX', format(DIGITS, tick), one.queue)
        end
        call('XADD', base .. ':outbox:' .. one.queue, format(DIGITS, tick) .. '-0', 'm',
          concat({ 'c', one.id, lastBond, ids[n], 'dw0', values[n] }, '\0'))
      end
    end
    if #writes > 0 then call('HSET', one.links, '#p', format(DIGITS, pending), '#d', format(DIGITS, processed), unpack(writes)) end
  end
  if #receivers > 0 then reply[1] = reply[1] .. '\0' .. concat(receivers, '\0') end
end
