-- use: clock tools counters queue jobs locks names
-- Releases named locks, and places in line for them.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: for each lock: name, token.
-- Returns for each lock 1 if the token held it or had a place in line, else 0.
local replies = {}
for at = 1, #ARGV, 2 do
  local name, token = ARGV[at], ARGV[at + 1]
  local holder, place = holdOf(name), keptPlace(name, token)
  local holds = holder and holder.token == token
  if holds then drop(name, holder.session) end
  if place then leavePlace(name, token, place) end
  -- Wake the lock waiters: the first one in line may take the lock now.
  if holds or place then namesFreed = true end
  replies[#replies + 1] = (holds or place) and 1 or 0
end
save()
return replies
