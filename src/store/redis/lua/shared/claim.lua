-- Claiming, alone or after the outcomes of a settle.

-- Bytes that a reply with this job carries; it need not be copied to be measured.
local function sizeOf(id)
  local size = call('HSTRLEN', key('job'), id)
  if queue.sides == 0 then return size end
  return size + call('HSTRLEN', key('stack'), id) + call('HSTRLEN', key('progress'), id)
end

-- What a claim of so many jobs may take: nil where all of them surely fit, else the bytes that are left, `cut` once a job did not fit.
local function budgetOf(count)
  return count * queue.largest > REPLY_BYTES and { left = REPLY_BYTES, first = true } or nil
end

-- The first job always fits.
local function fits(budget, id)
  budget.left = budget.left - sizeOf(id)
  budget.cut = budget.left < 0 and not budget.first
  budget.first = false
  return not budget.cut
end

-- The first members of a place, as far as the budget goes, and whether there are more. The id begins at `idAt`.
-- Not ZPOPMIN, which would answer the scores too: as strings, at half a microsecond each.
local function pop(place, count, idAt, budget)
  local members = call('ZRANGE', place, 0, count)
  local more = #members > count
  if more then members[count + 1] = nil end
  for i = 1, budget and #members or 0 do
    if not fits(budget, members[i]:sub(idAt)) then
      for j = #members, i, -1 do members[j] = nil end
      more = true
      break
    end
  end
  if #members > 0 then call('ZREMRANGEBYRANK', place, 0, #members - 1) end
  return members, more
end

-- Up to `count` jobs in the order of claiming: their ids, their runs, whether more are waiting, and whether the budget kept it from those.
local function popWaiting(count)
  local budget = budgetOf(count)
  local ids, more = pop(key('wait'), count, 1, budget)
  if #ids < count and not (budget and budget.cut) then
    local members
    members, more = pop(key('prio'), count - #ids, 17, budget)
    for i = 1, #members do ids[#ids + 1] = members[i]:sub(17) end
  elseif not more then
    more = call('EXISTS', key('prio')) == 1
  end
  more = more or anyBehind()
  local texts, size = fetch(key('run'), ids), 0
  for i = 1, #ids do
    -- A place without a job (keys deleted by hand, or evicted) must not keep the others from being claimed.
    if texts[i] then
      size = size + 1
      ids[size], texts[size] = ids[i], texts[i]
    end
  end
  for i = #ids, size + 1, -1 do ids[i], texts[i] = nil, nil end
  return ids, texts, more, budget and budget.cut
end

-- Jobs of this claim whose run could not be read. They are claimed, so that they fail: as jobs without a text.
local unreadable = {}

local NEXT = { ['0'] = '1', ['1'] = '2', ['2'] = '3', ['3'] = '4', ['4'] = '5' }

-- Answers of each job, in one list: id, fence, and made,started,priority,stalls,added,processed.
local function grant(ids, texts, request)
  local size = #ids
  local first, timed = ticks(size), request.timedMs ~= nil
  local ends = timed and digits(ceil(now + request.timedMs)) or ''
  local head = 'a,' .. request.seq .. ',' .. ends .. (timed and ',1,,,0,' or ',0,,,0,')
  local processed, owner, by = ',' .. digits(floor(now)), '\0' .. request.session .. ':', '\0' .. request.by
  local granted, writes, locks, turns, at = {}, {}, {}, {}, toldSize
  -- Jobs that were added together and have not run yet have equal texts: what was made of the last one is used again.
  local last, numbers, before, after, lockKey
  for i = 1, size do
    local id, fence, text = ids[i], digits(first + i - 1), texts[i]
    if text ~= last then
      -- Not decoded and encoded again: claims and finishes are most of what Redis does here, and this halves them.
      local made, started, rest = match(text, '^w,%d*,%d*,%d,%d*,%d*,%d*,(%d*,)(%d+)(,%d*,%d*,%d*),')
      if not made then
        unreadable[id] = true
        made, started, rest, text = '0,', '0', ',0,0,', ''
      end
      numbers = made .. (NEXT[started] or digits(started + 1)) .. rest .. processed
      lockKey = keyIn(text)
      last, before, after = not unreadable[id] and text, head .. numbers .. owner, lockKey and by .. '\0' .. lockKey or by
    end
    if lockKey then
      turns[#turns + 1], turns[#turns + 2] = lockKey, 'a'
      if turned then turned[id] = nil end
    end
    granted[3 * i - 2], granted[3 * i - 1], granted[3 * i] = id, fence, numbers
    writes[2 * i - 1], writes[2 * i] = id, before .. fence .. after
    locks[2 * i - 1], locks[2 * i] = fence, id
    told[at + 1], told[at + 2] = 'X', id
    at = at + 2
  end
  toldSize, toldEvents = at, toldEvents + size
  many('HSET', key('run'), writes)
  many('HSET', key('turns'), turns)
  many('ZADD', key((timed and 'ending:' or 'bound:') .. request.session), locks)
  if timed then
    for i = 1, 2 * size, 2 do locks[i] = ends end
    many('ZADD', key('ends'), locks)
  end
  set('active', queue.active + size)
  return granted
end

-- Short texts go as one: the client takes a hundred out of one text faster than out of a hundred replies. Each of them keeps all
-- of it in memory there, so long ones go one by one. Between them stands a number that no record can hold, the claim's first fence: a
-- damaged record has more fields than four, or fewer, and must not shift those of the others.
local function jobTexts(ids, fence)
  local texts, length = fetch(key('job'), ids), 0
  for i = 1, #ids do
    -- Its key was deleted by hand, or evicted.
    if not texts[i] or unreadable[ids[i]] then texts[i] = '\0\0\0' end
    length = length + #texts[i]
  end
  return length <= SHORT and concat(texts, '\0' .. fence .. ',') or texts
end

-- Answers alive,paused,limitedMs,nextInMs or -1,drained (and ,1 when the byte budget was used up); what `grant` says of the jobs, NUL between; their texts; and, where some
-- job has any, their reasons, stacks and progress as columns. `keepSeq` must follow it.
local function claim(request)
  local session, due = openSession(request.session), nextDue()
  local alive = session and session.expires > now
  local limits = (request.max or queue.limitedUntil > now or queue.windowEnds > now) and openSpecial()
  local ids, granted, waiting, cut = {}, {}, nil, false
  if alive then
    if session.suspected then reassure(request.session) end
    local seq, last = tonumber(request.seq), session.calls[request.lane]
    if seq <= last.seq then
      -- Carried out already, or a straggler that its caller gave up on: it may see what it got, never get more.
      ids, granted = openSpecial().grantedBefore(request)
    else
      last.seq, last.seqText, last.changed = seq, request.seq, true
      local texts
      if request.jobIds then
        ids, texts, cut = openSpecial().takeNamed(request, budgetOf(math.min(request.count, #request.jobIds)), fits)
        due = nextDue()
      else
        local count = queue.paused == 1 and 0 or limits and limits.room(request) or request.count
        -- Whether there is room or not: a due job that stayed delayed would look claimable by time alone.
        if due and due <= micros then
          openSpecial().promoteDue(count)
          due = nextDue()
        end
        if count > 0 and queue.cap > 0 then count = openSpecial().roomUnderCap(request.session, count) end
        if count > 0 then ids, texts, waiting, cut = popWaiting(count) end
      end
      if #ids > 0 then
        granted = grant(ids, texts, request)
        if limits then limits.useRoom(request, #ids) end
      end
    end
  end
  -- Whoever finds less than it wants waits for more, and has seen all that there is: it need not come again to arm the queue.
  if #ids < request.count and not request.jobIds and not cut then arming = true end
  local limited, nextInMs = limits and limits.limitedMs(request.max) or 0, -1
  if waiting == nil then waiting = call('EXISTS', key('wait'), key('prio')) > 0 or anyBehind() end
  if due and due <= micros then waiting = true end
  if limited > 0 and queue.paused == 0 then nextInMs = limited end
  if due then
    local left = math.max(0, ceil((due - micros) / 1000))
    if nextInMs == -1 or left < nextInMs then nextInMs = left end
  end
  local head = (alive and '1,' or '0,') .. queue.paused .. ',' .. limited .. ',' .. nextInMs .. (waiting and ',0' or ',1') .. (cut and ',1' or '')
  if #ids == 0 then return { head } end
  local reply = { head, concat(granted, '\0'), jobTexts(ids, granted[2]) }
  if queue.sides == 1 then
    reply[4], reply[5], reply[6] = fetch(key('reason'), ids), fetch(key('stack'), ids), fetch(key('progress'), ids)
  end
  return reply
end

-- Writes the number of the last call of a session's lane, and fields that go with it.
local function keepSeq(id, lane, ...)
  local session = openSession(id)
  local last = session and session.calls[lane]
  if last and (last.changed or ...) then call('HSET', key('s:' .. id), 'seq' .. lane, last.seqText, ...) end
end

-- session, seq, lane, count, by and, '' for none of them, timedMs,max,durationMs,and how many job ids there are at the end of all.
local function claimRequest(at)
  local request = {
    session = ARGV[at], seq = ARGV[at + 1], lane = ARGV[at + 2], count = tonumber(ARGV[at + 3]), by = ARGV[at + 4],
  }
  if ARGV[at + 5] == '' then return request end
  local timedMs, max, durationMs, named = match(ARGV[at + 5], '^([^,]*),([^,]*),([^,]*),(%d*)$')
  request.timedMs, request.max, request.durationMs = tonumber(timedMs), tonumber(max), tonumber(durationMs)
  if named ~= '' then
    request.jobIds = {}
    for i = 1, tonumber(named) do request.jobIds[i] = ARGV[#ARGV - named + i] end
  end
  return request
end
