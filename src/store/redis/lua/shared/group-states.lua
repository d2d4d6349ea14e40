-- Groups of jobs: contract/groups.ts has the rule of turns. A group in line is in the ring, or aside if it has no room.
--   groups           by key: active,number,at and, if it has any of them, ,maxActive,rateMax,rateMs,paused,blockedUntil,windowEnds,windowUsed
--     number         its number in line; empty if it is not in line
--     at             r in the ring, a aside, s aside until its block or window ends; empty if it is not in line
--     maxActive, rateMax, rateMs   limits of its own; empty if it has none. paused: 1 or 0
--   groupNames       the keys of all stored groups, in the order of their bytes
--   members:<key>    its waiting jobs by priority, then by place, as in `prio`. They are in `behind:` too, for lists: see lane-moves.lua
--   ring             groups by number, then by the bytes of the key. Some may have no room under limits that were lowered since
--   aside            groups by the tick at which they were put there
--   resting          those of them that are aside until a time, by this time in ms
--   idle             groups that are stored only because a block or a window has an end ahead, by this end in ms
-- Settings (see counters.lua) of the queue: turns, the number of the last turn · plainTurn, the number of the jobs without a group ·
-- groupActive, groupMax, groupMs, the limits of all groups, 0 for none, the first two one more than the limit · recheck, the tick up to
-- which groups aside have to be looked at again, because these limits have changed.
-- The first job of a group, or setting, raises the layout of the queue to 5: processes of versions that do not know groups must not touch
-- the queue then.
local GROUP, LIMITS = '^(%d*),(%d*),(%a?)(.*)$', '^,(%d*),(%d*),(%d*),(%d*),(%d*),(%d*),(%d*)$'
-- MOVED_AT_ONCE: the groups that one script looks at again. VISITED: the groups without room or jobs that one claim passes.
local MOVED_AT_ONCE, VISITED = 200, 400

if queue.layout < 5 then
  settings = settings or { $each{settings # = 0} }
  set('layout', 5)
end

-- `get` reads the state of a group; `touch` lets `flush` put the group where it belongs, and the end of the script write it.
local known = {}
groups.touched, groups.changed = {}, {}

local function read(name, text)
  local active, number, at, more = match(text or '', GROUP)
  local one = {
    name = name, stored = text, active = tonumber(active) or 0, number = tonumber(number or ''), at = at or '', maxActive = '',
    rateMax = '', rateMs = '', paused = '0', blockedUntil = 0, windowEnds = 0, windowUsed = 0,
  }
  one.placed = one.number
  local maxActive, rateMax, rateMs, paused, blockedUntil, windowEnds, windowUsed = match(more or '', LIMITS)
  if not windowUsed then return one end
  one.maxActive, one.rateMax, one.rateMs, one.paused = maxActive, rateMax, rateMs, paused
  one.blockedUntil, one.windowEnds, one.windowUsed = tonumber(blockedUntil) or 0, tonumber(windowEnds) or 0, tonumber(windowUsed) or 0
  return one
end

function groups.get(name)
  known[name] = known[name] or read(name, call('HGET', key('groups'), name))
  return known[name]
end

-- Returns the states of several groups.
function groups.all(names)
  local unknown, found = {}, {}
  for i = 1, #names do
    if not known[names[i]] then unknown[#unknown + 1] = names[i] end
  end
  local texts = fetch(key('groups'), unknown)
  for i = 1, #unknown do known[unknown[i]] = read(unknown[i], texts[i]) end
  for i = 1, #names do found[i] = known[names[i]] end
  return found
end

-- Returns the states of groups that were found in the ring or aside (`at`). If a state is lost (a user deleted keys, or Redis evicted
-- them), the group is in line again, with the number of the last turn.
function groups.inLine(names, at)
  local list = groups.all(names)
  for i = 1, #list do
    local one = list[i]
    if not one.number then one.number, one.at = settings.turns, at end
  end
  return list
end

function groups.touch(one)
  if one.touched then return end
  one.touched = true
  groups.touched[#groups.touched + 1] = one
  if not one.changed then groups.changed[#groups.changed + 1] = one end
  one.changed = true
end

-- Returns the rate that applies to a group: max and ms; nil without one.
local function rateOf(one)
  if one.rateMax ~= '' then return tonumber(one.rateMax), tonumber(one.rateMs) end
  if settings.groupMax > 0 then return settings.groupMax - 1, settings.groupMs end
end

function groups.hasSettings(one) return one.paused == '1' or one.maxActive ~= '' or one.rateMax ~= '' end

-- Returns whether a further job of the group may be active.
function groups.hasPlace(one)
  local most = tonumber(one.maxActive) or settings.groupActive > 0 and settings.groupActive - 1 or math.huge
  return one.paused ~= '1' and one.active < most
end

-- Returns the time in ms at which the block or the used window of a group ends. The group rests if it is ahead.
function groups.restEnd(one)
  if one.windowEnds <= now then return one.blockedUntil end
  local max = rateOf(one)
  local full = max and one.windowUsed >= max
  return math.max(one.blockedUntil, full and one.windowEnds or 0)
end

function groups.hasRoom(one) return groups.hasPlace(one) and groups.restEnd(one) <= now end

-- Counts a claimed job of a group.
function groups.took(one)
  local max, ms = rateOf(one)
  if max and one.windowEnds <= now then one.windowEnds, one.windowUsed = ceil(now + ms), 0 end
  if one.windowEnds > now then one.windowUsed = one.windowUsed + 1 end
  one.active = one.active + 1
  groups.touch(one)
end

-- Frees the place of a job that has left active.
function groups.left(name)
  local one = groups.get(name)
  one.active = math.max(0, one.active - 1)
  groups.touch(one)
end
