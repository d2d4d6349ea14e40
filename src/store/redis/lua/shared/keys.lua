-- Lock keys and groups in run texts.
local function anyBehind() return (queue.keys == 1 or queue.layout > 4) and call('EXISTS', key('behind:wait'), key('behind:prio')) > 0 end

-- Returns the lock key at the end of a run text, or nil; NUL and the key of the group for a job of a group. It uses `find` without a
-- pattern, which is faster.
local function keyIn(run)
  if queue.keys == 0 and queue.layout < 5 then return nil end
  local at = 0
  for _ = 1, 3 do
    at = string.find(run, '\0', at + 1, true)
    if not at then return nil end
  end
  return run:sub(at + 1)
end

-- Frees the lock key of a run text, or its place in a group, if it has one.
local function freeKeyIn(run)
  local name = keyIn(run)
  if not name then return end
  if name:byte() == 0 then openGroups().left(name:sub(2)) else openLanes().freeKey(name) end
end

-- Gives the turn of its lock key, if it has one, to a job that becomes active. Returns the lock key or the group as the end of a run text.
local function startKeyIn(id, run)
  local name = keyIn(run)
  if not name then return '' end
  if name:byte() ~= 0 then openLanes().start(name, id) end
  return '\0' .. name
end
