-- The third part of the fast path (see plain-settle.lua): the new run texts, locks and events of the jobs to claim, and the granted list
-- of the reply, as in `grant` of claim.lua.
local granted, locks = { nil, nil, nil }, { nil, nil }
if fits and claims > 0 then
  local start, after = format(ACTIVE_RUN, seq, '', '0'), '\0' .. ARGV[9]
  local lastText, numbers, before = nil, nil, nil
  for i = 1, claims do
    local id, fence, text = ids[i], format(DIGITS, place + size + i - 1), texts[size + i]
    if text ~= lastText then
      local made, started, rest = match(text or '', WAITS)
      if not made then
        fits = false
        break
      end
      numbers = made .. (started == '0' and '1' or format(DIGITS, started + 1)) .. rest .. ',' .. moment
      lastText, before = text, start .. numbers .. '\0' .. owner
    end
    granted[3 * i - 2], granted[3 * i - 1], granted[3 * i] = id, fence, numbers
    runs[2 * (size + i) - 1], runs[2 * (size + i)] = id, before .. fence .. after
    locks[2 * i - 1], locks[2 * i] = fence, id
    told[3 * size + 2 * i - 1], told[3 * size + 2 * i] = 'X', id
  end
end
