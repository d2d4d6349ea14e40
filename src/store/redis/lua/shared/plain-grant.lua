-- The fourth part of the fast path (see plain-settle.lua): the new run texts, locks and events of the jobs to claim, and the granted list
-- of the reply, as in `grant` of claim.lua.
local granted, locks, anyMarked = { nil, nil, nil }, { nil, nil }, false
if fits and claims > 0 then
  local start, after = format(ACTIVE_RUN, seq, '', '0'), '\0' .. ARGV[9]
  local lastText, numbers, before = nil, nil, nil
  local first, lastMade, lastStarted, lastRest, numbersOfGroup, beforeOfGroup = place + size - 1 + (asides and #asides / 2 or 0), nil, nil, nil, nil, nil
  for i = 1, claims do
    local id, fence, text = ids[i], format(DIGITS, first + i), texts[size + i]
    local slot = owners and owners[i]
    if slot then
      -- The run texts of jobs of groups differ by their places.
      local made, started, rest = match(text or '', GROUPED_WAITS)
      if not made then
        fits = false
        break
      end
      if rest ~= lastRest or started ~= lastStarted or made ~= lastMade then
        lastMade, lastStarted, lastRest = made, started, rest
        numbersOfGroup = made .. (started == '0' and '1' or format(DIGITS, started + 1)) .. rest .. ',' .. moment
        beforeOfGroup = 'A' .. start:sub(2) .. numbersOfGroup .. '\0' .. owner
      end
    elseif text ~= lastText then
      local isMarked = layout > 5 and text and text:byte() == 87
      local made, started, rest = match(isMarked and 'w' .. text:sub(2) or text or '', WAITS)
      if not made then
        fits = false
        break
      end
      numbers = made .. (started == '0' and '1' or format(DIGITS, started + 1)) .. rest .. ',' .. moment
      lastText, before = text, (isMarked and 'A' .. start:sub(2) or start) .. numbers .. '\0' .. owner
      anyMarked = anyMarked or isMarked
    end
    granted[3 * i - 2], granted[3 * i - 1], granted[3 * i] = id, fence, slot and numbersOfGroup or numbers
    runs[2 * (size + i) - 1] = id
    runs[2 * (size + i)] = slot and beforeOfGroup .. fence .. after .. '\0\0' .. names[slot] or before .. fence .. after
    locks[2 * i - 1], locks[2 * i] = fence, id
    told[3 * size + 2 * i - 1], told[3 * size + 2 * i] = 'X', id
  end
  -- A marked job fits if it is of a family and nothing else.
  if fits and anyMarked then
    extras = extras or call('HMGET', base .. ':extra', unpack(ids))
    for i = 1, claims do
      local isOther = not (owners and owners[i]) and texts[size + i]:byte() == 87 and not match(extras[i] or '', '^[246],')
      if isOther then fits = false end
    end
  end
end
