-- use: clock tools counters queue groups
-- Forgets the settings, blocks, windows and turns of groups, BITE groups per call. The limits of all groups stay while a session is open.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: `=` and the key after which to begin; '': at the first.
-- Returns `=` and the key to continue after; '' at the end.
if queue.layout < 5 then return '' end
local BITE = 100
openGroups()
for _, name in ipairs({ 'turns', 'plainTurn' }) do settings[name] = 0 end
if call('EXISTS', key('sessions')) == 0 then
  for _, name in ipairs({ 'groupActive', 'groupMax', 'groupMs' }) do settings[name] = 0 end
end
local names = call('ZRANGEBYLEX', key('groupNames'), ARGV[1] == '' and '-' or '(' .. ARGV[1]:sub(2), '+', 'LIMIT', 0, BITE)
for _, one in ipairs(groups.all(names)) do
  one.paused, one.maxActive, one.rateMax, one.rateMs, one.blockedUntil, one.windowEnds = '0', '', '', '', 0, 0
  if one.number then one.number = call('EXISTS', key('members:' .. one.name)) == 1 and 0 or nil end
  groups.touch(one)
end
dirty = true
save()
return #names == BITE and '=' .. names[BITE] or ''
