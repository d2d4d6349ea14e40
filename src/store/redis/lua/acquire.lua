-- use: clock tools counters queue jobs locks ending expiry reassure names
-- Grants named locks, or a place in line for them.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: for each request: name, token, session, keepPlaceMs (0: keep no place in line).
-- Returns for each request a list:
--   h fence            held: the token owns the lock
--   t ahead endsInMs   taken: `ahead` lock waiters come first; the owner's session lives endsInMs at most ('': no living owner)
--   g                  gone: the session of the request has ended or expired
local function acquire(name, token, session, keepPlaceMs)
  if not isLiving(session) then return { 'g' } end
  reassure(session)
  local holder = holdOf(name)
  local living = holder and isLiving(holder.session)
  if living and holder.token == token then return { 'h', holder.fence } end
  local place = keptPlace(name, token)
  local ahead, lapsed = countLine(name, place and token)
  for i = 1, #lapsed do leavePlace(name, lapsed[i][1], lapsed[i][2]) end
  if not living and ahead == 0 then
    if holder then
      -- End the former owner's session: a late renewal would revive it, and the former owner would trust its lock again.
      endSession(holder.session, 1)
      lines = {}
      drop(name, holder.session)
    end
    if place then leavePlace(name, token, place) end
    return { 'h', hold(name, session, token) }
  end
  if keepPlaceMs ~= '0' then
    if place then keepPlace(name, token, place, keepPlaceMs) else enterLine(name, token, session, keepPlaceMs) end
  elseif place then
    leavePlace(name, token, place)
    namesFreed = true
  end
  return { 't', ahead, living and ceil(openSession(holder.session).expires - now) or '' }
end

local replies = {}
for at = 1, #ARGV, 4 do replies[#replies + 1] = acquire(ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]) end
save()
return replies
