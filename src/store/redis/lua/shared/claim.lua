-- Claims jobs, alone or after the outcomes of a settle. settle.lua calls `claim`, and then `keepSeq`.

-- Returns the bytes of this job in a reply. HSTRLEN measures texts without copying them.
local function sizeOf(id)
  local size = call('HSTRLEN', key('job'), id)
  if queue.sides == 0 then return size end
  return size + call('HSTRLEN', key('stack'), id) + call('HSTRLEN', key('progress'), id)
end

-- Returns the byte budget for a claim of `count` jobs; nil if that many of the largest job fit into a reply. `left` is the bytes that
-- are left; `cut` is true once a job did not fit.
local function budgetOf(count)
  return count * queue.largest > REPLY_BYTES and { left = REPLY_BYTES, first = true } or nil
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

-- Removes up to `count` jobs in claim order. Returns their ids, their runs, whether more jobs wait, and whether the budget was the limit.
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
    -- Skip a place without a job (a user deleted keys, or Redis evicted them): it must not block the claim of other jobs.
    if texts[i] then
      size = size + 1
      ids[size], texts[size] = ids[i], texts[i]
    end
  end
  for i = #ids, size + 1, -1 do ids[i], texts[i] = nil, nil end
  return ids, texts, more, budget and budget.cut
end

-- Jobs of this claim whose run text is damaged. They are claimed with an empty job text, so that the worker fails them.
local unreadable = {}

local NEXT = { ['0'] = '1', ['1'] = '2', ['2'] = '3', ['3'] = '4', ['4'] = '5' }

-- Locks the jobs for the session. Returns one flat list: for each job its id, fence, and made,started,priority,stalls,added,processed.
local function grant(ids, texts, request)
  local size = #ids
  local first, timed = ticks(size), request.timedMs ~= nil
  local ends = timed and digits(ceil(now + request.timedMs)) or ''
  local head = 'a,' .. request.seq .. ',' .. ends .. (timed and ',1,,,0,' or ',0,,,0,')
  local processed, owner, by = ',' .. digits(floor(now)), '\0' .. request.session .. ':', '\0' .. request.by
  local granted, writes, locks, turns, at = {}, {}, {}, {}, toldSize
  -- Jobs that were added together and have not run yet have equal run texts. The result for the last text is cached and used again.
  local last, numbers, before, after, lockKey
  for i = 1, size do
    local id, fence, text = ids[i], digits(first + i - 1), texts[i]
    if text ~= last then
      -- Fast path: a pattern instead of `decode` and `encode`. Claims and finishes are most of the load, and this halves their cost.
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

-- Claims jobs. The caller must call `keepSeq` afterwards. Returns a list:
--   1     alive,paused,limitedMs,nextInMs (-1: no delayed job and no limit),drained and, if the byte budget was the limit, ,1
--   2     the list of `grant`, joined with NUL
--   3     the texts of the jobs: see `jobTexts`
--   4–6   columns of reasons, stacks and progress; only if some job of the queue has or had any
-- If no job was claimed, the list has only the first item.
local function claim(request)
  local session, due = openSession(request.session), nextDue()
  local alive = session and session.expires > now
  local limits = (request.max or queue.limitedUntil > now or queue.windowEnds > now) and openSpecial()
  local ids, granted, waiting, cut = {}, {}, nil, false
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
  local head = (alive and '1,' or '0,') .. queue.paused .. ',' .. limited .. ',' .. nextInMs .. (waiting and ',0' or ',1') .. (cut and ',1' or '')
  if #ids == 0 then return { head } end
  local reply = { head, concat(granted, '\0'), jobTexts(ids, granted[2]) }
  if queue.sides == 1 then
    reply[4], reply[5], reply[6] = fetch(key('reason'), ids), fetch(key('stack'), ids), fetch(key('progress'), ids)
  end
  return reply
end

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
