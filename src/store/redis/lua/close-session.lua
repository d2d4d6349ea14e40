-- use: clock counters queue jobs lanes places locks ending retention hand-back sessions names
-- ARGV: id, 1 when it counts as a stall. Hands back everything that it holds, a bite per call; answers 1 when there is more.
local id, charged, BITE = ARGV[1], ARGV[2], 100
local own, bound, ending = key('s:' .. id), key('bound:' .. ARGV[1]), key('ending:' .. ARGV[1])
if call('EXISTS', own) == 0 then return 0 end
endSession(id, charged == '1' and EXITED or '0')
local owner = ownerOf(id)
-- A sweep may have ended it before.
owner.charged, owner.found = charged == '1', 'exit'
-- The newest first: when the rest follows in later bites, the oldest will be in front.
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
return call('EXISTS', own)
