-- use: clock queue jobs lanes places locks retention special claim
-- ARGV: caller or '', its seq, 1 with a claim, the claim request (empty without one), how many outcomes, and of each
--   c id token value keep · f id token reason stacktrace keep · r id token reason stacktrace delay lifo · d id token delay ·
--   w id token; then the job ids of the claim
--   keep: '' all, 0 none, else count,age with nothing for what does not limit
-- Answers a letter per outcome (d done, l lost, m missing) and the claim. Carries out the outcomes, then the claim.
local caller, callSeq, withClaim = ARGV[1], ARGV[2], ARGV[3] == '1'
local OUTCOMES_AT = 13
local TEXTS = { c = 5, f = 6, r = 7, d = 4, w = 3 }
-- A worker's last call is remembered with its session, anybody else's for a while.
local REMEMBERED_MS = 15 * 60 * 1000
local memory = key('call:' .. caller)
local finishes = 0

-- What the outcomes write, put together.
local runs, values, reasons, stacks, gone = {}, {}, {}, {}, {}
local lists, keep = { c = {}, f = {} }, { c = {}, f = {} }

local function append(list, id, text)
  local size = #list
  list[size + 1], list[size + 2] = id, text
end

local finishedOn = digits(floor(now))

-- Answers the run that is left of the job, false when it is gone.
local function finish(kind, id, at, session, ends, made, rest)
  free(id, session, ends)
  local lockKey = keyIn(rest)
  if lockKey then openLanes().freeKey(lockKey) end
  finishes = finishes + 1
  made = NEXT[made] or digits(made + 1)
  local keeping
  if kind == 'c' then
    tell(1, 'C', id, ARGV[at + 3])
    keeping = ARGV[at + 4]
  else
    tell(2, 'F', id, ARGV[at + 3], made)
    keeping = ARGV[at + 5]
  end
  if keeping == '0' then
    gone[#gone + 1] = id
    return false
  elseif keeping ~= '' then
    local kept, count, age = keep[kind], match(keeping, '^(%d*),(%d*)$')
    kept.count, kept.age = least(kept.count, tonumber(count)), least(kept.age, tonumber(age))
  end
  local list = lists[kind]
  list[#list + 1] = id
  if kind == 'c' then
    append(values, id, ARGV[at + 3])
  else
    append(reasons, id, ARGV[at + 3])
    append(stacks, id, ARGV[at + 4])
  end
  -- The token stays, so that a repeated finish is recognised.
  return kind .. ',,,0,' .. finishedOn .. ',,0,' .. made .. rest
end

local function handOver(kind, job, at)
  unlock(job)
  if kind == 'r' then
    local reason, delay = ARGV[at + 3], ARGV[at + 5]
    job.made = job.made + 1
    append(reasons, job.id, reason)
    append(stacks, job.id, ARGV[at + 4])
    if delay ~= '0' then
      putDelayed(job, delay)
      tell(1, 'L', job.id, delay, reason)
    else
      putWaiting(job, ARGV[at + 6] == '1')
      tell(1, 'R', job.id, reason)
    end
  elseif kind == 'd' then
    putDelayed(job, ARGV[at + 3])
    tell(1, 'Y', job.id, ARGV[at + 3])
  else
    putWaiting(job, true)
    tell(1, 'B', job.id)
  end
  return encode(job)
end

-- Most outcomes of a call have tokens of one session.
local lastSession, lastPrefix = nil, nil
local function ownerOf(token)
  if not lastPrefix or string.find(token, lastPrefix, 1, true) ~= 1 or string.find(token, ':', #lastPrefix + 1, true) then
    lastSession = sessionOf(token)
    lastPrefix = lastSession .. ':'
  end
  return lastSession
end

local function settleOne(kind, id, text, at)
  local token = ARGV[at + 2]
  -- Not decoded and encoded again, see `grant`.
  local ends, made, rest = match(text, '^a,%d*,(%d*),%d,,,0,(%d*)(,.*)$')
  if ends then
    -- The token is not taken out of the text to be compared: that would be a string more for each job.
    local first, last = string.find(rest, token, 1, true)
    if token ~= '' and first and rest:byte(first - 1) == 0 and rest:byte(last + 1) == 0 then
      if kind == 'c' or kind == 'f' then return 'd', finish(kind, id, at, ownerOf(token), ends, made, rest) end
      return 'd', handOver(kind, decode(id, text), at)
    end
    return 'l'
  end
  local job = decode(id, text)
  local again = (kind == 'c' or kind == 'f') and job.state == kind and job.token == token
  return again and 'd' or 'l'
end

local function settleAll()
  local ids, starts, at = {}, {}, OUTCOMES_AT
  for i = 1, tonumber(ARGV[OUTCOMES_AT - 1]) do
    ids[i], starts[i] = ARGV[at + 1], at
    at = at + TEXTS[ARGV[at]]
  end
  local texts, results, settled = fetch(key('run'), ids), {}, {}
  for i = 1, #ids do
    local id = ids[i]
    -- Of two outcomes of one job, the second finds what the first has left.
    local text = settled[id]
    if text == nil then text = texts[i] end
    if not text then
      results[i] = 'm'
    else
      local result, left = settleOne(ARGV[starts[i]], id, text, starts[i])
      results[i] = result
      if left ~= nil then
        settled[id] = left
        if left then append(runs, id, left) end
      end
    end
  end
  flushUnlocked()
  many('HSET', key('run'), runs)
  many('HSET', key('value'), values)
  if #reasons > 0 then
    many('HSET', key('reason'), reasons)
    many('HSET', key('stack'), stacks)
    set('sides', 1)
  end
  erase(gone)
  for kind, list in pairs(lists) do
    if #list > 0 then
      local first, scores = ticks(#list), {}
      for i = 1, #list do scores[2 * i - 1], scores[2 * i] = digits(first + i - 1), list[i] end
      many('ZADD', key(STATES[kind]), scores)
      trim(STATES[kind], keep[kind].count, keep[kind].age, #list)
    end
  end
  return concat(results)
end

-- The number of the caller's last call, and the results that it got.
local function recall()
  local session = openSession(caller)
  if session then return session.callSeq or '0', session.results end
  return match(call('GET', memory) or '0,', '^(%d*),(.*)$')
end

-- After the claim, which would take its own number for that of a call that was carried out before.
local function remember(results)
  local session = openSession(caller)
  if not session then return call('SET', memory, callSeq .. ',' .. results, 'PX', REMEMBERED_MS) end
  session.seq = math.max(session.seq, tonumber(callSeq))
  keepSeq(caller, 'callSeq', callSeq, 'results', results)
end

local results
if caller ~= '' then
  local last, remembered = recall()
  if tonumber(callSeq) < tonumber(last) then return straggler(caller, callSeq, last) end
  if callSeq == last then results = remembered end
end
local repeated = results ~= nil
if not repeated then results = settleAll() end
local claimed = withClaim and claim(claimRequest(4))
if caller ~= '' and not repeated then remember(results) end
if withClaim and (ARGV[4] ~= caller or repeated) then keepSeq(ARGV[4]) end
if finishes > 0 and queue.active == 0 and not anyWaiting() then tell(1, 'E') end
flushPlaces()
save()
return { results, claimed or false }
