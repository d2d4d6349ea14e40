-- Lock keys (see lane-moves.lua): who has the turn of a key. `arrange` gives the turns of the keys that were touched. freed: lock keys whose
-- job has left active or the claim order. comers: by lock key, the entries that came to wait. given: keys and turns to write.
local function first(entries, other)
  for i = 1, #entries do
    local a, b = entries[i], other
    if not b or tonumber(a[1]) < tonumber(b[1]) or (a[1] == b[1] and a[2] < b[2]) then other = a end
  end
  return other
end

-- Returns the entry that has the turn; nil if there is none or its job is active.
function lanes.turnOf(text)
  if not text or text == 'a' then return nil end
  local priority, member = match(text, '^(%d+),(.*)$')
  return { priority, member, member:sub(17) }
end

-- Gives the turn after a turn has ended: to the first entry among the lane and the comers. Returns the entry, nil if there is none.
function lanes.nextTurn(lane, came)
  if came then
    lanes.putBehind(lane, came)
    -- Write them now, because the entry that gets the turn may be one of them.
    lanes.flushBehind()
  end
  local popped = call('ZPOPMIN', key('lane:' .. lane))
  if not popped[1] then return nil end
  local entry = { popped[2], popped[1], popped[1]:sub(17) }
  lanes.unhide(entry)
  lanes.show(entry)
  return entry
end

-- Compares the comers with the job that has the turn, unless that job is active. Returns the entry that takes the turn over, or nil.
function lanes.sameTurn(lane, came, turn)
  local before = lanes.turnOf(turn)
  local chosen = turn ~= 'a' and first(came, before) or nil
  if #came > 1 or came[1] ~= chosen then lanes.putBehind(lane, came, chosen) end
  if chosen == before then return nil end
  lanes.show(chosen)
  if before then
    lanes.hide(before)
    lanes.putBehind(lane, { before })
  end
  return chosen
end

local freed, comers, given, touched = {}, {}, {}, false

local function give(lane, turn) given[#given + 1], given[#given + 2] = lane, turn end

function lanes.freeKey(lane)
  freed[lane], touched = true, true
end

-- Records that a job has come to wait at this place. Returns the place as 16 digits, for `ord` of the job.
function lanes.lineUp(job, place)
  local ord = format('%016.0f', place + ORD_BIAS)
  local list = comers[job.key] or {}
  comers[job.key], touched = list, true
  list[#list + 1] = { job.priority, ord .. job.id, job.id }
  return ord
end

-- Records that the job that has the turn becomes active.
function lanes.start(lane, id)
  give(lane, 'a')
  freed[lane], touched = nil, true
  if turned then turned[id] = nil end
end

function lanes.arrange()
  if not touched then return end
  local ended, names = {}, {}
  for lane in pairs(freed) do
    local entry = lanes.nextTurn(lane, comers[lane])
    if entry then give(lane, entry[1] .. ',' .. entry[2]) else ended[#ended + 1] = lane end
    comers[lane] = nil
  end
  for lane in pairs(comers) do names[#names + 1] = lane end
  local turns = fetch(key('turns'), names)
  for i = 1, #names do
    local entry = lanes.sameTurn(names[i], comers[names[i]], turns[i])
    if entry then give(names[i], entry[1] .. ',' .. entry[2]) end
  end
  lanes.flush()
  many('HSET', key('turns'), given)
  many('HDEL', key('turns'), ended)
  freed, comers, given, touched = {}, {}, {}, false
end

-- The ways out of a line. The caller has called `arrange` before.

-- Removes a waiting job from the claim order or from `behind:`.
function lanes.leaveLine(job)
  local entry = { job.priority, job.ord .. job.id, job.id }
  if call('HGET', key('turns'), job.key) == entry[1] .. ',' .. entry[2] then
    lanes.hide(entry)
    lanes.freeKey(job.key)
  else
    call('ZREM', key('lane:' .. job.key), entry[2])
    lanes.unhide(entry)
  end
  lanes.flush()
end

-- Takes the turn for a waiting job that becomes active now, out of order. Returns false if another job of its key is active.
function lanes.takeTurn(job)
  local turn = call('HGET', key('turns'), job.key)
  if turn == 'a' then return false end
  lanes.leaveLine(job)
  local before = lanes.turnOf(turn)
  if before and before[2] ~= job.ord .. job.id then
    lanes.hide(before)
    lanes.putBehind(job.key, { before })
  end
  lanes.start(job.key, job.id)
  lanes.arrange()
  return true
end
