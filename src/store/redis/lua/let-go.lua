-- use: clock counters queue jobs lanes locks names
-- ARGV: of each lock: name, token. Answers 1 for each that was held or waited for.
local replies = {}
for at = 1, #ARGV, 2 do
  local name, token = ARGV[at], ARGV[at + 1]
  local holder, place = holdOf(name), keptPlace(name, token)
  local holds = holder and holder.token == token
  if holds then drop(name, holder.session) end
  if place then leavePlace(name, token, place) end
  -- Whoever comes first now may have it.
  if holds or place then namesFreed = true end
  replies[#replies + 1] = (holds or place) and 1 or 0
end
save()
return replies
