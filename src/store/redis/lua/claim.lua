-- Claiming jobs: the parts of settle that claim.

-- part: claim
-- The parts of a claim that few claims need, made on first use: see `lanes` in keys.lua.
local special
local function openSpecial()
  if special then return special end
  special = {}
  -- The parts of a claim that few claims need: named jobs, a cap, a limit, due jobs, a repetition.
  -- PROMOTED_AT_ONCE: the delayed jobs that one claim makes wait, unless it wants more. Many jobs due at once must not block Redis.
  local PROMOTED_AT_ONCE = 100
  -- LOOKED_BACK: the newest locks of a session among which a repeated claim looks for its jobs, PAGE at a time.
  local PAGE, LOOKED_BACK = 200, 5000

  -- Removes the jobs that the request names from their places, in this order. It skips jobs that neither wait nor are due, and jobs whose
  -- lock key is taken or whose group has no place. `fits` returns whether one more job is within the budget (nil: no budget). Returns ids,
  -- run texts, and whether the budget was the limit.
  function special.takeNamed(request, budget, fits)
    local ids, texts, taken = {}, {}, {}
    flushPlaces()
    for i = 1, #request.jobIds do
      local id = request.jobIds[i]
      local job = #ids < request.count and not taken[id] and find(id)
      local due = job and job.state == 'd' and (tonumber(call('ZSCORE', key('delayed'), id)) or math.huge) <= micros
      local before = budget and budget.left
      if budget and (due or job and job.state == 'w') and not fits(budget, id) then break end
      if due then
        leave(job)
        putWaiting(job, false)
        tell(1, 'P', id)
        store({ job })
        flushPlaces()
      end
      if job and job.state == 'w' then
        local free = true
        if job.key then
          free = openLanes().takeTurn(job)
        elseif job.group then
          free = openGroups().takeNamed(job)
        else
          leave(job)
        end
        if free then
          taken[id] = true
          ids[#ids + 1], texts[#texts + 1] = id, encode(job)
        elseif budget then
          budget.left, budget.first = before, #ids == 0
        end
      end
    end
    return ids, texts, budget and budget.cut
  end

  function special.promoteDue(wanted)
    local most = math.max(PROMOTED_AT_ONCE, wanted)
    local ids = call('ZRANGEBYSCORE', key('delayed'), '-inf', micros, 'LIMIT', 0, most)
    local jobs = jobsOf(ids)
    for i = 1, #jobs do leave(jobs[i]) end
    for i = 1, #jobs do
      putWaiting(jobs[i], false)
      tell(1, 'P', jobs[i].id)
    end
    store(jobs)
  end

  -- Returns the locks that a session got under this seq, among its newest locks, read page by page. Once a page after a hit has none, the
  -- search ends, because the fences of one claim are consecutive.
  local function heldUnder(seq, holder)
    local found = {}
    for from = 0, LOOKED_BACK - 1, PAGE do
      local held, before = call('ZREVRANGE', holder, from, from + PAGE - 1), #found
      local texts = fetch(key('run'), held)
      for i = 1, #held do
        if texts[i] and match(texts[i], HELD_UNDER) == seq then found[#found + 1] = { held[i], texts[i] } end
      end
      if #held < PAGE or (before > 0 and #found == before) then break end
    end
    return found
  end

  -- Returns the jobs that a claim under this seq got and that the session still owns. Other lanes may have claimed more since.
  function special.grantedBefore(request)
    local ids, granted = {}, {}
    for _, kind in ipairs({ 'bound:', 'ending:' }) do
      local found = heldUnder(request.seq, key(kind .. request.session))
      for i = #found, 1, -1 do
        local id, text = unpack(found[i])
        local job = decode(id, text)
        local size = #granted
        ids[#ids + 1] = id
        granted[size + 1], granted[size + 2], granted[size + 3] = id, fenceOf(job.token), numbersOf(job)
      end
    end
    return ids, granted
  end
  -- The parts of a claim that few claims need: its room under a cap, a block, a rate and a window.

  -- Returns how many of `count` jobs the cap leaves to a session, by the rule of job/cap.ts. If the session wants no more than the unused
  -- part of its share, the locks of other sessions are not counted.
  function special.roomUnderCap(session, count)
    local free = queue.cap - 1 - queue.active
    if free <= 0 then return 0 end
    local wanted = math.min(free, count)
    local ids = call('ZRANGEBYSCORE', key('sessions'), '(' .. digits(floor(now)), '+inf')
    local slots, sharing = fetch(key('slots'), ids), 0
    for i = 1, #ids do
      slots[i] = tonumber(slots[i]) or 0
      if slots[i] > 0 then sharing = sharing + 1 end
    end
    local share = math.max(1, floor((queue.cap - 1) / math.max(1, sharing)))
    local function unused(i)
      local most = math.min(share, slots[i])
      if most == 0 then return 0 end
      return math.max(0, most - call('ZCARD', key('bound:' .. ids[i])) - call('ZCARD', key('ending:' .. ids[i])))
    end
    local own, left = 0, free
    for i = 1, #ids do
      if ids[i] == session then own = unused(i) end
    end
    for i = 1, #ids do
      if own >= wanted or left <= own then break end
      if ids[i] ~= session then left = left - unused(i) end
    end
    return math.min(wanted, math.max(own, left))
  end

  -- Returns how many jobs the request may claim, under a block (`configure` in queues.lua) and under the window of the rate limit.
  function special.room(request)
    if queue.limitedUntil > now then return 0 end
    if not request.max then return request.count end
    return math.min(request.count, request.max - (queue.windowEnds > now and queue.windowUsed or 0))
  end

  -- Counts claimed jobs in the window of the rate limit. The first claimed job opens the window; a claim without a job does not.
  function special.useRoom(request, claims)
    if request.max and queue.windowEnds <= now then
      set('windowEnds', ceil(now + request.durationMs))
      set('windowUsed', 0)
    end
    if queue.windowEnds <= now then return end
    set('windowUsed', queue.windowUsed + claims)
    if request.max then set('windowMax', request.max) end
  end

  -- Returns the ms until claims are possible again, under the rate limit `max` if it is given; 0 if they are possible now.
  function special.limitedMs(max)
    local full = queue.windowEnds > now and max and queue.windowUsed >= max
    return ceil(math.max(0, queue.limitedUntil - now, full and queue.windowEnds - now or 0))
  end
  return special
end

-- The places that a claim takes jobs from, in claim order, and the byte budget of its reply.

-- Returns the bytes of this job in a reply. HSTRLEN measures texts without copying them.
local function sizeOf(id)
  local size = call('HSTRLEN', key('job'), id)
  if queue.sides == 0 then return size end
  return size + call('HSTRLEN', key('stack'), id) + call('HSTRLEN', key('progress'), id)
end

-- Returns the byte budget for a claim of `count` jobs; nil for one job, and if that many of the largest job fit into a reply. `left` is
-- the bytes that are left; `cut` is true once a job did not fit.
local function budgetOf(count)
  return count > 1 and count * queue.largest > REPLY_BYTES and { left = REPLY_BYTES, first = true } or nil
end

-- Returns whether the job fits into the budget, and charges its bytes. The first job always fits.
local function fits(budget, id)
  budget.left = budget.left - sizeOf(id)
  budget.cut = budget.left < 0 and not budget.first
  budget.first = false
  return not budget.cut
end

-- Removes and returns the first members of a place, within the budget, and whether the place has more. Ids begin at `idAt`.
-- It does not use ZPOPMIN, because ZPOPMIN also returns the scores as strings, at half a microsecond each.
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

-- Returns whether a group may be in line. Queues of level 6 may never have had one.
local function anyGroups()
  return queue.level > 4 and (queue.level < 6 or groups ~= nil or call('EXISTS', key('ring'), key('aside')) > 0)
end

-- Removes up to `count` jobs in claim order. Returns their ids, their runs, whether more jobs wait, and whether the budget was the limit.
local function popWaiting(count)
  local budget = budgetOf(count)
  if anyGroups() then
    local ids, texts, cut = openGroups().pop(count, budget, fits)
    return ids, texts, nil, cut
  end
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
    -- Skip a place without a job (a user deleted keys, or Redis evicted them): it must not block the claim of other jobs.
    if texts[i] then
      size = size + 1
      ids[size], texts[size] = ids[i], texts[i]
    end
  end
  for i = #ids, size + 1, -1 do ids[i], texts[i] = nil, nil end
  return ids, texts, more, budget and budget.cut
end

-- Claims jobs, alone or after the outcomes of a settle. settle.lua calls `claim`, and then `keepSeq`.

-- Jobs of this claim whose run text is damaged. They are claimed with an empty job text, so that the worker fails them.
local unreadable = {}

local NEXT = { ['0'] = '1', ['1'] = '2', ['2'] = '3', ['3'] = '4', ['4'] = '5' }

-- Locks the jobs for the session. Returns one flat list: for each job its id, fence, and numbers (see `numbersOf`).
local function grant(ids, texts, request)
  local size = #ids
  local first, timed = ticks(size), request.timedMs ~= nil
  local ends = timed and digits(ceil(now + request.timedMs)) or ''
  local head = format(ACTIVE_RUN, request.seq, ends, timed and '1' or '0')
  local processed, owner, by = ',' .. digits(floor(now)), '\0' .. request.session .. ':', '\0' .. request.by
  local granted, writes, locks, at = {}, {}, {}, toldSize
  -- Jobs that were added together and have not run yet have equal run texts. The result for the last text is cached and used again.
  local last, numbers, before, after
  for i = 1, size do
    local id, fence, text = ids[i], digits(first + i - 1), texts[i]
    if text ~= last then
      -- Fast path: a pattern instead of `decode` and `encode`. Claims and finishes are most of the load, and this halves their cost.
      local marked = match(text, '^W')
      local made, started, rest = match(marked and 'w' .. text:sub(2) or text, WAITS)
      if not made then
        unreadable[id] = true
        made, started, rest, text = '0,', '0', ',0,0,', ''
      end
      numbers = made .. (NEXT[started] or digits(started + 1)) .. rest .. processed
      last, before, after = not unreadable[id] and text, (marked and 'A' .. head:sub(2) or head) .. numbers .. owner, by .. startKeyIn(id, text)
    end
    granted[3 * i - 2], granted[3 * i - 1], granted[3 * i] = id, fence, numbers
    writes[2 * i - 1], writes[2 * i] = id, before .. fence .. after
    locks[2 * i - 1], locks[2 * i] = fence, id
    told[at + 1], told[at + 2] = 'X', id
    at = at + 2
  end
  toldSize, toldEvents = at, toldEvents + size
  many('HSET', key('run'), writes)
  many('ZADD', key((timed and 'ending:' or 'bound:') .. request.session), locks)
  if timed then
    for i = 1, 2 * size, 2 do locks[i] = ends end
    many('ZADD', key('ends'), locks)
  end
  set('active', queue.active + size)
  return granted
end

-- Returns the texts of the jobs: joined into one text if they are short, because the client splits one text faster than it reads a
-- hundred replies. In the client, each part keeps the whole joined text in memory, so long texts are returned one by one.
-- The separator contains the first fence of the claim, which no job text can contain: a damaged text has more or fewer than four
-- fields, and must not shift the fields of other jobs.
local function jobTexts(ids, fence)
  local texts, length = fetch(key('job'), ids), 0
  for i = 1, #ids do
    -- No text: a user deleted the key, or Redis evicted it.
    if not texts[i] or unreadable[ids[i]] then texts[i] = '\0\0\0' end
    length = length + #texts[i]
  end
  return length <= SHORT and concat(texts, '\0' .. fence .. ',') or texts
end

-- Returns the list that `claim` returns. extras, debts: columns, nil if they were not read.
local function replyOf(head, ids, granted, extras, debts)
  if #ids == 0 then return { head } end
  local reply, anyExtra = { head, concat(granted, '\0'), jobTexts(ids, granted[2]) }, false
  extras = extras or queue.level > 1 and fetch(key('extra'), ids) or {}
  for i = 1, #extras do anyExtra = anyExtra or extras[i] end
  if queue.sides == 1 or anyExtra then
    for i, side in ipairs({ 'reason', 'stack', 'progress' }) do reply[3 + i] = queue.sides == 1 and fetch(key(side), ids) end
  end
  if anyExtra then reply[7] = extras end
  if debts then reply[8] = debts end
  return reply
end

-- Claims jobs. The caller must call `keepSeq` afterwards. Returns a list:
--   1     alive,paused,limitedMs,nextInMs (-1: no delayed job and no limit),drained and, if the byte budget was the limit, ,1
--         If a schedule is owing that no claimed job carries, or messages wait, ,1 or ,0 for the budget, and ,1
--   2     the list of `grant`, joined with NUL
--   3     the texts of the jobs: see `jobTexts`
--   4–6   columns of reasons, stacks and progress; only if some job of the queue has or had any
--   7     column of marks and extras; only if some of the jobs have any
--   8     column of debts (see `started` in schedules.lua); only if some of the jobs have any
-- If no job was claimed, the list has only the first item.
local function claim(request)
  -- The rule of job/rate.ts: `max` of the queue and the duration of the claim come first.
  if settings and settings.rateMax > 0 then
    request.max, request.durationMs = settings.rateMax - 1, request.durationMs or settings.rateMs
  end
  local session, due = openSession(request.session), nextDue()
  local alive = session and session.expires > now
  local limits = (request.max or queue.limitedUntil > now or queue.windowEnds > now) and openSpecial()
  local ids, granted, waiting, cut, debts, debtCount, extras = {}, {}, nil, false, nil, 0, nil
  local hasSchedules = queue.level > 2 and call('EXISTS', key('schedules')) == 1
  if alive then
    if session.suspected then reassure(request.session) end
    local seq, last = tonumber(request.seq), session.calls[request.lane]
    if seq <= last.seq then
      -- This call was carried out before, or it is a late call that its caller gave up on. Return the jobs that it got, never more.
      ids, granted = openSpecial().grantedBefore(request)
    else
      last.seq, last.seqText, last.changed = seq, request.seq, true
      local texts
      if request.jobIds then
        ids, texts, cut = openSpecial().takeNamed(request, budgetOf(math.min(request.count, #request.jobIds)), fits)
        due = nextDue()
      else
        local count = queue.paused == 1 and 0 or limits and limits.room(request) or request.count
        -- Promote due jobs even if there is no room for them: a due job that stays delayed would look claimable because of its time.
        if due and due <= micros then
          openSpecial().promoteDue(count)
          due = nextDue()
        end
        if count > 0 and queue.cap > 0 then count = openSpecial().roomUnderCap(request.session, count) end
        if count > 0 then ids, texts, waiting, cut = popWaiting(count) end
      end
      if #ids > 0 then
        granted = grant(ids, texts, request)
        if hasSchedules then
          extras = fetch(key('extra'), ids)
          debts, debtCount = openSchedules().started(ids, extras)
        end
        if limits then limits.useRoom(request, #ids) end
      end
    end
  end
  -- If a worker got fewer jobs than it wanted, it waits for more and has seen all jobs. Arm the queue here, to save it a call to `watch`.
  if #ids < request.count and not request.jobIds and not cut then arming = true end
  local limited, nextInMs = limits and limits.limitedMs(request.max) or 0, -1
  if waiting == nil then waiting = call('EXISTS', key('wait'), key('prio')) > 0 or anyBehind() end
  if due and due <= micros then waiting = true end
  if limited > 0 and queue.paused == 0 then nextInMs = limited end
  if due then
    local left = math.max(0, ceil((due - micros) / 1000))
    if nextInMs == -1 or left < nextInMs then nextInMs = left end
  end
  local rest = queue.paused == 0 and anyGroups() and openGroups().nextRest()
  if rest and (nextInMs == -1 or ceil(rest - now) < nextInMs) then nextInMs = ceil(rest - now) end
  local head = (alive and '1,' or '0,') .. queue.paused .. ',' .. limited .. ',' .. nextInMs .. (waiting and ',0' or ',1')
  local undone = hasSchedules and call('ZCARD', key('owing')) > debtCount or queue.level > 5 and openFamily().isOwing()
  if cut or undone then head = head .. (cut and ',1' or ',0') .. (undone and ',1' or '') end
  return replyOf(head, ids, granted, extras, debtCount > 0 and debts or nil)
end

-- The request of a claim, and the seq of the last call of a session.

-- Stores the seq of the last call in this lane of the session, with further fields if any are given.
local function keepSeq(id, lane, ...)
  local session = openSession(id)
  local last = session and session.calls[lane]
  if last and (last.changed or ...) then call('HSET', key('s:' .. id), 'seq' .. lane, last.seqText, ...) end
end

-- Reads a claim request of six arguments: session, seq, lane, count, by, extras.
--   extras   timedMs,max,durationMs,named: each may be empty; '' for none of them
--   named    the number of job ids, which are the last arguments of the call
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
