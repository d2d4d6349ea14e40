-- Fast path for most adds, in a straight line as in plain-settle.lua: jobs without a given id, priority, delay, lifo and lock key.
-- If a call does not fit the fast path, it leaves before it has changed anything, and add.lua carries the call out.
-- More than a thousand jobs would not fit on Lua's stack.
local reply, told, events, offers = nil, { nil, nil, nil }, 0, true
if #ARGV == 3 + ARGV[3] and #ARGV > 3 and #ARGV <= 1003 then
  repeat
    local size = #ARGV - 3
    local memory, run = base .. ':added:' .. ARGV[1], base .. ':run'
    local last = match(call('GET', memory) or '0', '^%d*')
    if tonumber(ARGV[2]) <= tonumber(last) then break end

    local added = NEW_RUN .. format(DIGITS, floor(now)) .. ',\0\0'
    local place = tick < micros and micros or tick + 1
    -- Tables begin with room for one job, because a table that grows is reallocated.
    local ids, runs, jobs, waits = { nil }, { nil, nil }, { nil, nil }, { nil, nil }
    for i = 1, size do
      local id, text = format(DIGITS, lastId + i), ARGV[3 + i]
      ids[i] = id
      if #text > largest then largest = #text end
      jobs[2 * i - 1], jobs[2 * i] = id, text
      runs[2 * i - 1], runs[2 * i] = id, added
      waits[2 * i - 1], waits[2 * i] = format(DIGITS, place + i - 1), id
      told[3 * i - 2], told[3 * i - 1], told[3 * i] = 'N', id, match(text, '^[^%z]*%z([^%z]*)')
    end
    -- If a user gave one of these ids to a job before, add.lua skips that id.
    if size == 1 then
      if call('HSETNX', run, ids[1], added) == 0 then break end
    else
      local known, anyKnown = call('HMGET', run, unpack(ids)), false
      for i = 1, size do anyKnown = anyKnown or known[i] end
      if anyKnown then break end
      call('HSET', run, unpack(runs))
    end
    call('HSET', base .. ':job', unpack(jobs))
    call('ZADD', base .. ':wait', unpack(waits))
    tick, lastId, events = place + size - 1, lastId + size, 2 * size
    reply = ids[1] .. ',' .. ARGV[3]
    call('SET', memory, ARGV[2] .. ',' .. reply, 'PX', ADD_REMEMBERED_MS)
  until true
end
