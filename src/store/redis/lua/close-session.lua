-- use: clock tools run-texts counters queue jobs groups lanes keys places enter marks marking families entries schedules metrics locks leave ending retention failing hand-back sessions names
-- Ends a session at its owner's request and hands back all its locks, at most BITE per call.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: id of the session, crashed (1: each job handed back counts as a stall).
-- Returns 1 if the session still holds locks (call again), else 0. If the script has sent messages: a list of this and the receiving queues.
local id, crashed, BITE = ARGV[1], ARGV[2] == '1', 100
local own, bound, ending = key('s:' .. id), key('bound:' .. ARGV[1]), key('ending:' .. ARGV[1])
if call('EXISTS', own) == 0 then return 0 end
endSession(id, crashed and EXITED or '0')
local owner = ownerOf(id)
-- A sweep may have ended the session before; the owner's own statement takes precedence over the sweep's.
owner.countsStall, owner.found = crashed, 'exit'
-- Hand back the newest locks first. Later calls put older jobs in front of them, so the oldest job ends up first.
local jobs = heldIn(bound, call('ZREVRANGE', bound, 0, BITE - 1))
if #jobs < BITE then
  local others = heldIn(ending, call('ZREVRANGE', ending, 0, BITE - #jobs - 1))
  for i = 1, #others do jobs[#jobs + 1] = others[i] end
end
handBack(jobs)
freeNames(id, BITE - #jobs)
tidy(id)
flushPlaces()
tellLosses()
save()
local left = call('EXISTS', own)
return receivers() and { left, unpack(receivers()) } or left
