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
  extras = extras or queue.layout > 1 and fetch(key('extra'), ids) or {}
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
--   8     column of debts (see `started` in schedule-debts.lua); only if some of the jobs have any
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
  local hasSchedules = queue.layout > 2 and call('EXISTS', key('schedules')) == 1
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
  local undone = hasSchedules and call('ZCARD', key('owing')) > debtCount or queue.layout > 5 and openFamily().isOwing()
  if cut or undone then head = head .. (cut and ',1' or ',0') .. (undone and ',1' or '') end
  return replyOf(head, ids, granted, extras, debtCount > 0 and debts or nil)
end
