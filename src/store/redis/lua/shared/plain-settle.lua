-- Fast path for most settles and claims, in a straight line: a worker completes jobs that are kept, if any, and claims the next jobs, in
-- a queue without due jobs, lock keys, limits, cap or pause. It has no functions, because Redis makes a script's functions anew in every
-- run. Those of settle.lua and its parts, with their garbage, were 45 of the 130 µs of a lone settle.
-- The fast path reads everything before it writes anything. If a call does not fit, it leaves before it has changed anything, and
-- settle.lua carries the call out. Both paths must leave the same data and return the same reply.
-- Also tried, each with a gain below 1 µs: no functions in clock.lua either; trimming events only now and then.
if ARGV[4] == '1' and ARGV[10] == '' and (ARGV[1] == '' and ARGV[11] == '0' or ARGV[5] == ARGV[1] and ARGV[6] == ARGV[2]
  and ARGV[7] == ARGV[3] and ARGV[12] == 'c' and ARGV[13] == ARGV[11] and ARGV[14] == '' and ARGV[15] == ARGV[1] .. ':') then
  repeat
    local session, seq, lane, most, by, size = ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[8]), ARGV[9], tonumber(ARGV[11])
    -- More than 1000 jobs would not fit on Lua's stack.
    if size > 1000 or most > 1000 or most == 0 then break end
    if paused ~= 0 or keys ~= 0 or cap ~= 0 or limitedUntil > now or windowEnds > now then break end
    local nextInMs, anyDelays = -1, delays
    if delays ~= 0 then
      local due = tonumber(call('ZRANGE', base .. ':delayed', 0, 0, 'WITHSCORES')[2])
      if not due then
        anyDelays = 0
      elseif due > micros then
        nextInMs = ceil((due - micros) / 1000)
      else
        break
      end
    end

    local own, bound, run, wait = base .. ':s:' .. session, base .. ':bound:' .. session, base .. ':run', base .. ':wait'
    local expires, ended, suspected, last = unpack(call('HMGET', own, 'expires', 'ended', 'suspected', 'seq' .. lane))
    if not expires or ended or suspected or tonumber(expires) <= now or tonumber(seq) <= tonumber(last or 0) then break end

    local ids = call('ZRANGE', wait, 0, most)
    local claims = #ids
    local waiting = claims > most
    if waiting then
      ids[claims], claims = nil, most
    elseif call('EXISTS', base .. ':prio') == 1 then
      break
    end
    local more = false
    if most * largest > REPLY_BYTES then
      local room = REPLY_BYTES
      for i = 1, claims do
        room = room - call('HSTRLEN', base .. ':job', ids[i])
        if sides == 1 then
          room = room - call('HSTRLEN', base .. ':stack', ids[i]) - call('HSTRLEN', base .. ':progress', ids[i])
        end
        if room < 0 and i > 1 then
          for j = i, claims do ids[j] = nil end
          claims, waiting, more = i - 1, true, true
          break
        end
      end
    end

    -- Read the run texts of the settled and of the claimed jobs in one command.
    local settled, texts, plain, seen = {}, {}, true, {}
    for i = 1, size do
      local id = ARGV[13 + 3 * i]
      settled[i], texts[i] = id, id
    end
    for i = 1, claims do texts[size + i] = ids[i] end
    if size + claims > 0 then texts = call('HMGET', run, unpack(texts)) end
    local owner = session .. ':'
    local mark, processed = '\0' .. owner, format(DIGITS, floor(now))
    local runs, scores, values, told = {}, {}, {}, {}
    local place, lastHead, left, firstFence, nextFence = tick < micros and micros or tick + 1, nil, nil, nil, nil
    for i = 1, size do
      local id, fence, value, text = settled[i], ARGV[14 + 3 * i], ARGV[15 + 3 * i], texts[i]
      local markAt = text and text:find(mark, 1, true)
      local fenceAt = markAt and markAt + #mark
      plain = markAt and fence ~= '' and text:find(fence, fenceAt, true) == fenceAt and text:byte(fenceAt + #fence) == 0
        and not seen[id]
      if not plain then break end
      local head = text:sub(1, markAt)
      if head ~= lastHead then
        local made, rest = match(head, '^a,%d*,,0,,,0,(%d*)(,[%d,]*%z)$')
        if not made then
          plain = false
          break
        end
        lastHead, left = head, 'c,,,0,' .. processed .. ',,0,' .. format(DIGITS, made + 1) .. rest .. owner
      end
      seen[id] = true
      local number = tonumber(fence)
      if i == 1 then firstFence, nextFence = number, number end
      nextFence = nextFence == number and number + 1
      runs[2 * i - 1], runs[2 * i] = id, left .. fence .. text:sub(fenceAt + #fence)
      scores[2 * i - 1], scores[2 * i] = format(DIGITS, place + i - 1), id
      if value ~= 'null' then values[#values + 1], values[#values + 2] = id, value end
      told[3 * i - 2], told[3 * i - 1], told[3 * i] = 'C', id, #value > EVENT_VALUE_BYTES and LARGE_VALUE or value
    end
    if not plain then break end

    local granted, locks = {}, {}
    if claims > 0 then
      local start, after, lastText, numbers, before = 'a,' .. seq .. ',,0,,,0,', '\0' .. by, nil, nil, nil
      for i = 1, claims do
        local id, fence, text = ids[i], format(DIGITS, place + size + i - 1), texts[size + i]
        if text ~= lastText then
          local made, started, rest = match(text or '', '^w,%d*,%d*,%d,%d*,%d*,%d*,(%d*,)(%d+)(,%d*,%d*,%d*),')
          if not made then
            plain = false
            break
          end
          numbers = made .. format(DIGITS, started + 1) .. rest .. ',' .. processed
          lastText, before = text, start .. numbers .. mark
        end
        granted[3 * i - 2], granted[3 * i - 1], granted[3 * i] = id, fence, numbers
        runs[2 * (size + i) - 1], runs[2 * (size + i)] = id, before .. fence .. after
        locks[2 * i - 1], locks[2 * i] = fence, id
        told[3 * size + 2 * i - 1], told[3 * size + 2 * i] = 'X', id
      end
      if not plain then break end
    end

    if size > 1 and nextFence == firstFence + size then
      call('ZREMRANGEBYSCORE', bound, format(DIGITS, firstFence), format(DIGITS, nextFence - 1))
    elseif size > 0 then
      call('ZREM', bound, unpack(settled))
    end
    if #runs > 0 then call('HSET', run, unpack(runs)) end
    if #values > 0 then call('HSET', base .. ':value', unpack(values)) end
    if size > 0 then call('ZADD', base .. ':completed', unpack(scores)) end
    if claims > 0 then
      call('ZREMRANGEBYRANK', wait, 0, claims - 1)
      call('ZADD', bound, unpack(locks))
    end
    local results = ('d'):rep(size)
    if size == 0 then
      call('HSET', own, 'seq' .. lane, seq)
    else
      call('HSET', own, 'seq' .. lane, seq, 'callSeq' .. lane, seq, 'results' .. lane, results)
    end

    local events = size + claims
    if events > 0 then
      tick, active = place + events - 1, active - size + claims
      if size > 0 and active == 0 and not waiting then
        events = events + 1
        told[#told + 1] = 'E'
        if anyDelays == 0 then largest = 0 end
      end
      event, version = event + events, version + 1
      told = concat(told, '\0')
      eventBytes = eventBytes + #told
      call('XADD', base .. ':events', 'MINID', '~', format(DIGITS, math.max(eventMarkBefore, event - EVENTS_KEPT + 1)),
        format(DIGITS, event) .. '-' .. events, 'e', told)
      if eventBytes >= EVENTS_SEGMENT then eventMarkBefore, eventMark, eventBytes = eventMark, event + 1, 0 end
      if armed == 1 then
        redis.pcall('PUBLISH', base .. ':events-wake', version)
        armed = 0
      end
    end
    if claims < most and not more then jobsArmed = 1 end
    call('SET', base .. ':meta', struct.pack(PACKED, tick, front, lastId, active, sides, anyDelays, paused, limitedUntil, windowEnds,
      windowUsed, windowMax, event, firstEvent, version, armed, jobsVersion, jobsArmed, keys, cap, locksVersion, locksArmed, largest,
      eventBytes, eventMark, eventMarkBefore, LAYOUT))

    local reply = { results, '1,0,0,' .. nextInMs .. (waiting and (more and ',0,1' or ',0') or ',1') }
    if claims == 0 then return reply end
    local length = 0
    texts = call('HMGET', base .. ':job', unpack(ids))
    for i = 1, claims do
      texts[i] = texts[i] or '\0\0\0'
      length = length + #texts[i]
    end
    reply[3], reply[4] = concat(granted, '\0'), length <= SHORT and concat(texts, '\0' .. granted[2] .. ',') or texts
    if sides == 1 then
      for i, side in ipairs({ 'reason', 'stack', 'progress' }) do
        reply[4 + i] = call('HMGET', base .. ':' .. side, unpack(ids))
      end
    end
    return reply
  until true
end
