-- use: clock tools counters queue groups
-- Reads groups.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: by what, and its arguments: k, keys of groups · p, the most groups to look at, `=` and the key after which to begin ('': at the
--   first).
-- Returns a list of three:
--   rules    groupActive, groupMax and groupMs: see shared/group-states.lua
--   next     `=` and the key to continue after; '' at the end
--   groups   for each group a list: key, active, paused, maxActive, rateMax, rateMs (each '' for none), limitedMs, waiting. A page leaves
--            out groups without waiting and active jobs and settings.
openGroups()
local names, next = {}, ''
if ARGV[1] == 'k' then
  for i = 2, #ARGV do names[i - 1] = ARGV[i] end
else
  names = call('ZRANGEBYLEX', key('groupNames'), ARGV[3] == '' and '-' or '(' .. ARGV[3]:sub(2), '+', 'LIMIT', 0, ARGV[2])
  if #names == tonumber(ARGV[2]) then next = '=' .. names[#names] end
end
local found = {}
for i, one in ipairs(groups.all(names)) do
  local waiting = call('ZCARD', key('members:' .. one.name))
  local isShown = waiting + one.active > 0 or groups.hasSettings(one)
  if isShown or ARGV[1] == 'k' then
    found[#found + 1] = {
      one.name, one.active, one.paused, one.maxActive, one.rateMax, one.rateMs, math.max(0, ceil(groups.restEnd(one) - now)), waiting,
    }
  end
end
return { { settings.groupActive, settings.groupMax, settings.groupMs }, next, found }
