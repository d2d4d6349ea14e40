-- The second part of the fast path (see plain-settle.lua): the new run texts, scores, values and events of the jobs to complete, the range
-- of their fences, and the groups that they leave.
local scores, values, firstFence, nextFence = { nil, nil }, nil, nil, nil
if fits and size > 0 then
  local finished, mark, seen = format(FINISHED_RUN, 'c', moment), '\0' .. owner, size > 1 and {}
  local lastHead, left, isMarked = nil, nil, false
  leaving = grouped and {}
  for i = 1, size do
    local id, fence, value, text = settled[i], ARGV[14 + 3 * i], ARGV[15 + 3 * i], texts[i]
    local markAt = text and text:find(mark, 1, true)
    local fenceAt = markAt and markAt + #mark
    fits = markAt and fence ~= '' and text:find(fence, fenceAt, true) == fenceAt and text:byte(fenceAt + #fence) == 0
      and not (seen and seen[id])
    if not fits then break end
    local head = text:sub(1, markAt)
    if head ~= lastHead then
      isMarked = layout > 4 and head:byte() == 65
      local ends, made, rest = match(isMarked and 'a' .. head:sub(2) or head, HELD)
      fits = ends == ''
      if not fits then break end
      lastHead, left = head, (isMarked and 'C' .. finished:sub(2) or finished) .. (made == '0' and '1' or format(DIGITS, made + 1)) .. rest .. owner
    end
    local tail = text:sub(fenceAt + #fence)
    if grouped then leaving[i] = false end
    if isMarked then
      -- Without a group, the job may be a child.
      local at = tail:find('\0', 2, true)
      if at then
        fits = grouped and tail:byte(at + 1) == 0
        if not fits then break end
        leaving[i] = tail:sub(at + 2)
      else
        fits = ARGV[16 + 3 * size] ~= nil
        if not fits then break end
        children = children or {}
        children[i] = true
      end
    end
    if seen then seen[id] = true end
    local number = tonumber(fence)
    if i == 1 then firstFence, nextFence = number, number end
    nextFence = nextFence == number and number + 1
    runs[2 * i - 1], runs[2 * i] = id, left .. fence .. tail
    scores[2 * i - 1], scores[2 * i] = format(DIGITS, place + i - 1), id
    if value ~= 'null' then
      values = values or {}
      values[#values + 1], values[#values + 2] = id, value
    end
    told[3 * i - 2], told[3 * i - 1], told[3 * i] = 'C', id, #value > EVENT_VALUE_BYTES and LARGE_VALUE or value
  end
end
