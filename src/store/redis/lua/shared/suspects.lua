-- Returns the ms until the first suspected session ends, 0 if it has ended, -1 if no session is suspected.
local function firstEnd()
  local suspects, first = call('SMEMBERS', key('suspects')), nil
  for from = 1, #suspects, AT_ONCE do
    local ends = call('ZMSCORE', key('sessions'), unpack(suspects, from, math.min(from + AT_ONCE - 1, #suspects)))
    for i = 1, #ends do
      local at = ends[i] and tonumber(ends[i])
      if at and (not first or at < first) then first = at end
    end
  end
  return first and math.max(0, ceil(first - now)) or -1
end
