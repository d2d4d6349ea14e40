-- use: clock queue jobs places locks retention hand-back sessions
-- ARGV: id, 1 when it counts as a stall. Hands back everything that it holds, a bite per call; answers 1 when there is more.
local id, charged, BITE = ARGV[1], ARGV[2], 250
local own = key('s:' .. id)
if call('EXISTS', own) == 0 then return 0 end
endSession(id, charged)
local held = call('ZREVRANGE', key('bound:' .. id), 0, BITE - 1)
if #held < BITE then
  local ending = call('ZREVRANGE', key('ending:' .. id), 0, BITE - #held - 1)
  for i = 1, #ending do held[#held + 1] = ending[i] end
end
local jobs = jobsOf(held)
limits[id] = { stalls = tonumber(call('HGET', own, 'maxStalls')), charged = charged == '1' }
handBack(jobs)
tidy(id)
save()
return call('EXISTS', own)
