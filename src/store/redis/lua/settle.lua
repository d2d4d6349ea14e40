-- use: clock counters plain-settle queue jobs lanes places locks expiry reassure retention special claim
-- Settles outcomes, then claims; either part may be absent. A repeated settle (same caller and seq) returns the first results.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: 1 caller ('': none, as in a claim alone), 2 seq, 3 lane, 4 withClaim (1 or 0), 5–10 the claim request (see `claimRequest` in
--   claim.lua; empty texts without a claim), 11 number of outcomes, from 12 on the outcomes in groups, last the job ids of the claim.
--   group     consecutive outcomes of one kind and one session with the same `keep`: kind, size, keep, owner, then for each outcome
--             its job id, its fence and the texts of its kind
--   owner     the token up to its fence: session and colon
--   kind      c completed: value · f failed: reason, stacktrace · e failed with attempts left: reason, stacktrace
--             r retry: reason, stacktrace, delayMs, lifo · d delay: delayMs · w release · u return
--   keep      '' keeps all, 0 keeps none, else count,ageMs, each empty if it does not limit
-- Returns a text with a letter for each outcome (d done, l lost, m missing), then the reply of `claim` in claim.lua.
local caller, callSeq, lane, withClaim = ARGV[1], ARGV[2], ARGV[3], ARGV[4] == '1'
local OUTCOMES_AT = 12
local TEXTS = { c = 3, f = 4, e = 4, r = 6, d = 3, w = 2, u = 2 }
-- The last call of a worker is stored with its session. The last call of any other caller is stored for REMEMBERED_MS.
local REMEMBERED_MS = 15 * 60 * 1000
local memory = key('call' .. lane .. ':' .. caller)
local finishes = 0

-- The writes of all outcomes, collected so that each hash gets one command.
local runs, values, reasons, stacks, gone = {}, {}, {}, {}, {}
local lists, keep = { c = {}, f = {} }, { c = {}, f = {} }

local function append(list, id, text)
  local size = #list
  list[size + 1], list[size + 2] = id, text
end

-- Finishes a job. Returns false if its outcome says that the job is not kept.
local function finish(group, id, at, made)
  finishes = finishes + 1
  local kind, text = group.kind, ARGV[at + 2]
  if kind == 'f' then
    -- If attempts are left, the second event (retries-exhausted) is not emitted. Its number stays unused, because older readers count it.
    tell(2, 'F', id, text, group.early and '' or made)
  else
    tell(1, 'C', id, group.keep == '0' and lastValue(id, text) or eventValue(text))
  end
  if group.keep == '0' then
    gone[#gone + 1] = id
    return false
  elseif group.keep ~= '' and not group.counts then
    group.counts = true
    local kept, count, age = keep[kind], match(group.keep, '^(%d*),(%d*)$')
    kept.count, kept.age = least(kept.count, tonumber(count)), least(kept.age, tonumber(age))
  end
  local list = lists[kind]
  list[#list + 1] = id
  if kind == 'f' then
    append(reasons, id, text)
    append(stacks, id, ARGV[at + 3])
  elseif text ~= 'null' then
    append(values, id, text)
  end
  return true
end

local function handOver(kind, job, at)
  unlock(job)
  if kind == 'r' then
    local reason, delay = ARGV[at + 2], ARGV[at + 4]
    job.made = job.made + 1
    append(reasons, job.id, reason)
    append(stacks, job.id, ARGV[at + 3])
    noteSize(#ARGV[at + 3])
    if delay ~= '0' then
      tell(1, 'L', job.id, putDelayed(job, delay), reason)
    else
      putWaiting(job, ARGV[at + 5] == '1')
      tell(1, 'R', job.id, reason)
    end
  elseif kind == 'd' then
    tell(1, 'Y', job.id, putDelayed(job, ARGV[at + 2]))
  else
    if kind == 'u' then job.started = digits(job.started - 1) end
    putWaiting(job, true)
    tell(1, 'B', job.id)
  end
  return encode(job)
end

-- Jobs of one claim mostly have equal run texts up to the token. The result for the last such head is cached and used again.
local finishedOn = digits(floor(now))
local lastHead, lastEnds, lastMade, lastLeft

local function settleOne(group, id, text, at)
  local kind, fence = group.kind, ARGV[at + 1]
  -- Fast path: the run text is not decoded and encoded (see `grant`). The token is compared in place, because cutting it out would make
  -- one more string for each outcome. The token begins after the first NUL; otherwise the pattern below does not match.
  local first = text:find(group.mark, 1, true)
  local fenceAt = first and first + #group.mark
  if first and fence ~= '' and text:find(fence, fenceAt, true) == fenceAt and text:byte(fenceAt + #fence) == 0 then
    local head = text:sub(1, first)
    if head ~= lastHead then
      local ends, made, rest = match(head, '^a,%d*,(%d*),%d,,,0,(%d*)(,[%d,]*%z)$')
      lastHead, lastEnds = head, ends
      if ends then
        lastMade = NEXT[made] or digits(made + 1)
        -- The finished job keeps the token, so that a repeated finish is recognised.
        lastLeft = ',,,0,' .. finishedOn .. ',,0,' .. lastMade .. rest
      end
    end
    if lastEnds then
      if kind ~= 'c' and kind ~= 'f' then return 'd', handOver(kind, decode(id, text), at) end
      free(id, group.session, lastEnds, tonumber(fence))
      local lockKey = keyIn(text)
      if lockKey then openLanes().freeKey(lockKey) end
      return 'd', finish(group, id, at, lastMade) and kind .. lastLeft .. group.owner .. fence .. text:sub(fenceAt + #fence)
    end
  end
  local job, token = decode(id, text), group.owner .. fence
  local again = (kind == 'c' or kind == 'f') and job.state == kind and job.token == token and token ~= ''
  return again and 'd' or 'l'
end

local function readGroup(at)
  local owner, early = ARGV[at + 3], ARGV[at] == 'e'
  return {
    kind = early and 'f' or ARGV[at], early = early, size = tonumber(ARGV[at + 1]), keep = ARGV[at + 2], owner = owner, mark = '\0' .. owner,
    session = owner:sub(1, -2),
  }
end

local function settleAll()
  local ids, starts, groups, at, size = {}, {}, {}, OUTCOMES_AT, tonumber(ARGV[OUTCOMES_AT - 1])
  while #ids < size do
    local group = readGroup(at)
    local texts, known = TEXTS[group.kind], #ids
    for i = 1, group.size do
      local start = at + 4 + (i - 1) * texts
      ids[known + i], starts[known + i], groups[known + i] = ARGV[start], start, group
    end
    at = at + 4 + group.size * texts
  end
  local texts, results, settled = fetch(key('run'), ids), {}, {}
  for i = 1, size do
    local id = ids[i]
    -- If a job has two outcomes in one call, the second is applied to the result of the first.
    local text = settled[id]
    if text == nil then text = texts[i] end
    if not text then
      results[i] = 'm'
    else
      local result, left = settleOne(groups[i], id, text, starts[i])
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

-- Returns the seq of the caller's last settle, and its results.
local function recall()
  local session = openSession(caller)
  if session then
    local last = session.calls[lane]
    return last.callSeq or '0', last.results
  end
  return match(call('GET', memory) or '0,', '^(%d*),(.*)$')
end

-- Stores the seq and the results of this call. It must run after the claim: otherwise the claim, which has the same seq, would look
-- like a repetition.
local function remember(results)
  local session = openSession(caller)
  if not session then return call('SET', memory, callSeq .. ',' .. results, 'PX', REMEMBERED_MS) end
  local seq, last = tonumber(callSeq), session.calls[lane]
  if seq > last.seq then last.seq, last.seqText = seq, callSeq end
  keepSeq(caller, lane, 'callSeq' .. lane, callSeq, 'results' .. lane, results)
end

local results
if caller ~= '' then
  local last, remembered = recall()
  if tonumber(callSeq) < tonumber(last) then return straggler(caller, callSeq, last) end
  if callSeq == last then results = remembered end
end
local repeated = results ~= nil
if not repeated then results = settleAll() end
local request = withClaim and claimRequest(5)
local claimed = withClaim and claim(request)
if caller ~= '' and not repeated then remember(results) end
if withClaim and (request.session ~= caller or request.lane ~= lane or repeated) then
  keepSeq(request.session, request.lane)
end
if finishes > 0 and queue.active == 0 and not anyWaiting() then
  tell(1, 'E')
  -- Without delayed jobs, all jobs are finished: the bound on the size of unfinished jobs starts anew.
  if queue.delays == 0 then set('largest', 0) end
end
flushPlaces()
save()
if claimed then return { results, unpack(claimed) } end
return { results }
