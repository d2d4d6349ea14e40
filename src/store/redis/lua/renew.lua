-- use: clock tools counters queue expiry
-- Renews sessions. A renewal writes the same few fields, however many locks the session holds, and never revives an ended session.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: presence ('': no crash hint), then for each session: id, acked (number of the last notice that the owner has
--   processed), slots ('': unchanged).
-- Returns for each session 0 if it has ended, else its notices (see notices.lua): each is number, job id, fence and reason with NUL between,
-- and NUL c behind those of cancelled jobs.
-- noticed: the number of the last notice. lastAcked: of the last one that earlier renewals have acked.
local function noticesOf(id, acked, noticed, lastAcked)
  local revoked, cancelled = key('revoked:' .. id), key('cancelled:' .. id)
  local known = math.min(tonumber(acked), tonumber(noticed))
  if known > tonumber(lastAcked or 0) then call('HSET', key('s:' .. id), 'acked', known) end
  call('ZREMRANGEBYSCORE', revoked, '-inf', acked)
  call('ZREMRANGEBYSCORE', cancelled, '-inf', acked)
  local list = call('ZRANGE', revoked, 0, -1)
  for _, notice in ipairs(call('ZRANGE', cancelled, 0, -1)) do list[#list + 1] = notice .. '\0c' end
  return list
end

local replies = {}
for at = 2, #ARGV, 3 do
  local id, acked, slots = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local own = key('s:' .. id)
  local duration, ended, noticed, suspected, lastAcked =
    unpack(call('HMGET', own, 'duration', 'ended', 'revoked', 'suspected', 'acked'))
  if not duration or ended then
    replies[#replies + 1] = 0
  else
    expireAt(id, ceil(now + duration))
    call('HINCRBY', own, 'renewals', 1)
    -- The connection that renews a session vouches for it from now on: suspicion checks look for this connection.
    if ARGV[1] == '' then call('HDEL', key('presence'), id) else call('HSET', key('presence'), id, ARGV[1]) end
    if suspected then clearSuspicion(id) end
    if slots ~= '' and call('HGET', key('slots'), id) ~= slots then
      call('HSET', key('slots'), id, slots)
      if queue.cap > 0 then offer() end
    end
    -- Notices that the owner has acked are gone.
    replies[#replies + 1] = (noticed == '0' or noticed == lastAcked) and {} or noticesOf(id, acked, noticed, lastAcked)
  end
end
save()
return replies
