-- Retention: removing finished jobs above the limits.

-- part: retention
-- Limits how many finished jobs are kept. Trimming removes the oldest jobs, and a bounded number per script: later scripts remove the rest.

-- Returns the stricter of two limits; nil means no limit.
local function least(a, b)
  if a and b then return math.min(a, b) end
  return a or b
end

-- Puts finished jobs into their list, and trims it. state: completed or failed; count and ageMs: the limits, nil for none.
local function putFinished(state, finished, count, ageMs)
  local most, list, first, scores = TRIMMED_AT_ONCE + #finished, key(state), ticks(#finished), {}
  for i = 1, #finished do scores[2 * i - 1], scores[2 * i] = digits(first + i - 1), finished[i] end
  many('ZADD', list, scores)
  if count then
    local excess = math.min(call('ZCARD', list) - count, most)
    if excess > 0 then
      local popped, ids = call('ZPOPMIN', list, excess), {}
      for i = 1, #popped, 2 do ids[#ids + 1] = popped[i] end
      erase(ids)
    end
  end
  if ageMs then
    local ids = call('ZRANGEBYSCORE', list, '-inf', micros - ageMs * 1000, 'LIMIT', 0, most)
    if #ids > 0 then
      many('ZREM', list, ids)
      erase(ids)
    end
  end
end
