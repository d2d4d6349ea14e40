-- Applies the outcomes of a settle. settle.lua describes them, and calls `settleAll`.
local OUTCOMES_AT = 12
local TEXTS = { c = 3, f = 4, e = 4, r = 6, d = 3, s = 6, w = 2, u = 2, k = 3 }
local finishes, finishedOn = 0, digits(floor(now))

-- The writes of all outcomes, collected so that each hash gets one command.
local runs, values, reasons, stacks, gone = {}, {}, {}, {}, {}
local lists, keep = { c = {}, f = {} }, { c = {}, f = {} }
-- Jobs that fail because they were cancelled and would wait again.
local cancelled = {}

local function append(list, id, text)
  local size = #list
  list[size + 1], list[size + 2] = id, text
end

-- Finishes a job. Returns false if its outcome says that the job is not kept.
local function finish(series, id, at, made)
  finishes = finishes + 1
  local kind, text = series.kind, ARGV[at + 2]
  if settings then openMetrics().count(STATES[kind], 1) end
  if kind == 'f' then
    -- If attempts are left, the second event (retries-exhausted) is not emitted. Its number stays unused, because older readers count it.
    tell(2, 'F', id, text, series.early and '' or made)
  else
    tell(1, 'C', id, series.keep == '0' and lastValue(id, text) or eventValue(text))
  end
  if series.keep == '0' then
    gone[#gone + 1] = id
    return false
  elseif series.keep ~= '' and not series.counts then
    series.counts = true
    local kept, count, age = keep[kind], match(series.keep, '^(%d*),(%d*)$')
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

-- Moves an active job that is not plain, or that does not finish. Returns its run text; false if the job is not kept.
local function settleOther(series, job, at)
  local kind, token = series.kind, job.token
  local reason = kind ~= 'c' and kind ~= 'f' and job.marked and openMarking().cancelled(job)
  if reason then
    openFailing().cancel(job, reason)
    finishes, cancelled[#cancelled + 1] = finishes + 1, job
    return encode(job)
  end
  leave(job)
  if kind == 'c' or kind == 'f' then
    job.state, job.finished, job.token, job.made = kind, finishedOn, token, digits(job.made + 1)
    local isKept = finish(series, job.id, at, job.made)
    ended(job, { state = kind, text = ARGV[at + 2], made = job.made, token = token })
    return isKept and encode(job)
  elseif kind == 'r' then
    local reason, delay = ARGV[at + 2], ARGV[at + 4]
    job.made = job.made + 1
    append(reasons, job.id, reason)
    append(stacks, job.id, ARGV[at + 3])
    noteSize(#ARGV[at + 3])
    if delay ~= '0' then
      tell(1, 'L', job.id, putDelayed(job, delay), reason)
      if job.marked then openMarking().await(job) end
    else
      putWaiting(job, ARGV[at + 5] == '1')
      tell(1, 'R', job.id, reason)
    end
  elseif kind == 'd' or kind == 's' then
    tell(1, 'Y', job.id, putDelayed(job, ARGV[at + 2]))
    if job.marked then openMarking().await(job, kind == 's' and match(ARGV[at + 5], '^=(.*)$') or nil) end
  elseif kind == 'k' then
    openFamily().await(job, '0')
    tell(1, 'H', job.id)
  else
    if kind == 'u' then job.started = digits(job.started - 1) end
    putWaiting(job, true)
    tell(1, 'B', job.id)
  end
  return encode(job)
end

-- Returns why the children or the steps of an active job refuse the outcome; nil if they do not. Records the step of the outcome.
local function refusalOf(kind, job, at)
  if kind == 's' then return openMarking().recordDelay(job, ARGV[at + 3], ARGV[at + 4], match(ARGV[at + 5], '^=(.*)$')) end
  local child = ARGV[at + 2]
  if kind ~= 'k' and (kind ~= 'c' or not job.marked or queue.layout < 6) then return nil end
  return openFamily().refusal(job.id, kind, kind == 'k' and child ~= '' and child or nil)
end

local MARKED_ACTIVE = ('A'):byte()
-- Jobs of one claim mostly have equal run texts up to the token. The result for the last such head is cached and used again.
local lastHead, lastEnds, lastMade, lastLeft

local function settleOne(series, id, text, at)
  local kind, fence = series.kind, ARGV[at + 1]
  local isFinish, marked = kind == 'c' or kind == 'f', false
  -- Fast path of most jobs: the run text is not decoded and encoded (see `grant`). The token is compared in place, because cutting it out
  -- would make one more string for each outcome. The token begins after the first NUL; otherwise the pattern below does not match.
  local first = isFinish and text:find(series.mark, 1, true)
  local fenceAt = first and first + #series.mark
  if first and fence ~= '' and text:find(fence, fenceAt, true) == fenceAt and text:byte(fenceAt + #fence) == 0 then
    marked = text:byte() == MARKED_ACTIVE
    local head = marked and 'a' .. text:sub(2, first) or text:sub(1, first)
    if head ~= lastHead then
      local ends, made, rest = match(head, HELD)
      lastHead, lastEnds = head, ends
      if ends then
        lastMade = NEXT[made] or digits(made + 1)
        -- The finished job keeps the token, so that a repeated finish is recognised.
        lastLeft = lastMade .. rest
      end
    end
    if lastEnds then
      local refusal = marked and kind == 'c' and queue.layout > 5 and openFamily().refusal(id, kind)
      if refusal then return refusal end
      free(id, series.session, lastEnds, tonumber(fence))
      freeKeyIn(text)
      local isKept = finish(series, id, at, lastMade)
      if marked then ended({ id = id, marked = true }, { state = kind, text = ARGV[at + 2], made = lastMade, token = fence }) end
      local finished = marked and series.markedFinished or series.finished
      return 'd', isKept and finished .. lastLeft .. series.owner .. fence .. text:sub(fenceAt + #fence)
    end
  end
  local job, token = decode(id, text), series.owner .. fence
  if fence == '' or job.token ~= token then return 'l' end
  if job.state == 'a' then
    local refusal = refusalOf(kind, job, at)
    if refusal then return refusal end
    return 'd', settleOther(series, job, at)
  end
  return isFinish and job.state == kind and 'd' or 'l'
end

local function readSeries(at)
  local owner, early = ARGV[at + 3], ARGV[at] == 'e'
  local letter = early and 'f' or ARGV[at]
  return {
    kind = letter, early = early, size = tonumber(ARGV[at + 1]), keep = ARGV[at + 2], owner = owner, mark = '\0' .. owner,
    session = owner:sub(1, -2), finished = format(FINISHED_RUN, letter, finishedOn),
    markedFinished = format(FINISHED_RUN, letter:upper(), finishedOn),
  }
end

local function settleAll()
  local ids, starts, seriesOf, at, size = {}, {}, {}, OUTCOMES_AT, tonumber(ARGV[OUTCOMES_AT - 1])
  while #ids < size do
    local series = readSeries(at)
    local texts, known = TEXTS[series.kind], #ids
    for i = 1, series.size do
      local start = at + 4 + (i - 1) * texts
      ids[known + i], starts[known + i], seriesOf[known + i] = ARGV[start], start, series
    end
    at = at + 4 + series.size * texts
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
      local result, left = settleOne(seriesOf[i], id, text, starts[i])
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
  if #cancelled > 0 then failing.store(cancelled) end
  for kind, list in pairs(lists) do
    if #list > 0 then putFinished(STATES[kind], list, keep[kind].count, keep[kind].age) end
  end
  return concat(results)
end
