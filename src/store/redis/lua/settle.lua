-- use: clock queue jobs places locks retention claim
-- ARGV: caller or '', its seq, 1 with a claim, the claim request (empty without one), how many outcomes, and of each
--   c id token value count age · f id token reason stacktrace count age · r id token reason stacktrace delay lifo · d id token delay ·
--   w id token
-- Answers a letter per outcome (d done, l lost, m missing) and the claim. Carries out the outcomes, then the claim.
local caller, callSeq, withClaim = ARGV[1], ARGV[2], ARGV[3] == '1'
local OUTCOMES_AT = 12
local TEXTS = { c = 6, f = 7, r = 7, d = 4, w = 3 }
-- A worker's last call is remembered as long as its session is open, anybody else's for a while.
local REMEMBERED_MS = 15 * 60 * 1000
local memory = key('call:' .. caller)

local finished = { c = 0, f = 0 }
local keep = { c = {}, f = {} }
local gone, runs, values, reasons, stacks = {}, {}, {}, {}, {}
local lists = { c = {}, f = {} }

local function least(a, text)
  local b = tonumber(text)
  if b and (not a or b < a) then return b end
  return a
end

local function finish(kind, job, at)
  local session, fence = job.session, job.fence
  unlock(job)
  finished[kind] = finished[kind] + 1
  job.made = job.made + 1
  local count = ARGV[at + TEXTS[kind] - 2]
  if kind == 'c' then
    tell(1, 'C', job.id, ARGV[at + 3])
  else
    tell(2, 'F', job.id, ARGV[at + 3], job.made)
  end
  if count == '0' then
    gone[#gone + 1] = job.id
    return false
  end
  keep[kind].count = least(keep[kind].count, count)
  keep[kind].age = least(keep[kind].age, ARGV[at + TEXTS[kind] - 1])
  job.state, job.finished = kind, floor(now)
  -- Who finished it stays, so that a repeated finish is recognised.
  job.session, job.fence = session, fence
  local list = lists[kind]
  list[#list + 1] = job.id
  if kind == 'c' then
    values[#values + 1], values[#values + 2] = job.id, ARGV[at + 3]
  else
    reasons[#reasons + 1], reasons[#reasons + 2] = job.id, ARGV[at + 3]
    stacks[#stacks + 1], stacks[#stacks + 2] = job.id, ARGV[at + 4]
  end
  return job
end

local function carryOut(kind, job, at)
  if kind == 'c' or kind == 'f' then return finish(kind, job, at) end
  unlock(job)
  if kind == 'r' then
    job.made = job.made + 1
    reasons[#reasons + 1], reasons[#reasons + 2] = job.id, ARGV[at + 3]
    stacks[#stacks + 1], stacks[#stacks + 2] = job.id, ARGV[at + 4]
    local delay = ARGV[at + 5]
    if delay ~= '0' then
      putDelayed(job, delay)
      tell(1, 'L', job.id, delay, ARGV[at + 3])
    else
      putWaiting(job, ARGV[at + 6] == '1')
      tell(1, 'R', job.id, ARGV[at + 3])
    end
  elseif kind == 'd' then
    putDelayed(job, ARGV[at + 3])
    tell(1, 'Y', job.id, ARGV[at + 3])
  else
    putWaiting(job, true)
    tell(1, 'B', job.id)
  end
  return job
end

local function settleAll()
  local kinds, ids, starts, at = {}, {}, {}, OUTCOMES_AT
  for i = 1, tonumber(ARGV[OUTCOMES_AT - 1]) do
    local kind = ARGV[at]
    kinds[i], ids[i], starts[i] = kind, ARGV[at + 1], at
    at = at + TEXTS[kind]
  end
  local texts = fetch(key('run'), ids)
  local judged, results = {}, {}
  for i = 1, #ids do
    local id, kind, start = ids[i], kinds[i], starts[i]
    -- Of two outcomes of one job, the second finds what the first has left.
    local job = judged[id]
    if job == nil then job = texts[i] and decode(id, texts[i]) end
    if not job then
      results[i] = 'm'
    elseif tokenOf(job) ~= ARGV[start + 2] then
      results[i] = 'l'
    elseif job.state == 'a' then
      job = carryOut(kind, job, start)
      judged[id] = job
      results[i] = 'd'
    else
      results[i] = job.state == kind and 'd' or 'l'
    end
  end
  for id, job in pairs(judged) do
    if job then runs[#runs + 1], runs[#runs + 2] = id, encode(job) end
  end
  flushUnlocked()
  many('HSET', key('run'), runs)
  many('HSET', key('value'), values)
  many('HSET', key('reason'), reasons)
  many('HSET', key('stack'), stacks)
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

local results
if caller ~= '' then
  local last, remembered = match(call('GET', memory) or '0,', '^(%d*),(.*)$')
  if tonumber(callSeq) < tonumber(last) then return { err = 'HOLDFAST STRAGGLER ' .. last } end
  if callSeq == last then results = remembered end
end
local repeated = results ~= nil
if not repeated then results = settleAll() end
local claimed = withClaim and claim(claimRequest(4))
if caller ~= '' and not repeated then
  local value = callSeq .. ',' .. results
  if isOpen(caller) then
    call('SET', memory, value)
    local own = key('s:' .. caller)
    -- After the claim, which would take its own number for that of a call that was carried out before.
    if tonumber(callSeq) > (tonumber(call('HGET', own, 'seq')) or 0) then call('HSET', own, 'seq', callSeq) end
  else
    call('SET', memory, value, 'PX', REMEMBERED_MS)
  end
end
if finished.c + finished.f > 0 and call('EXISTS', key('active')) == 0 and not anyWaiting() then tell(1, 'E') end
save()
return { results, claimed or false }
