-- Lock keys: of the jobs with the same key, one at a time is active.

-- part: keys
-- Lock keys and groups in run texts.
local function anyBehind() return (queue.keys == 1 or queue.level > 4) and call('EXISTS', key('behind:wait'), key('behind:prio')) > 0 end

-- Returns the lock key at the end of a run text, or nil; NUL and the key of the group for a job of a group. It uses `find` without a
-- pattern, which is faster.
local function keyIn(run)
  if queue.keys == 0 and queue.level < 5 then return nil end
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

-- part: lanes
-- Lock keys. Jobs without a lock key must not pay for these functions: they were a sixth of a lone settle.
-- The functions are made on first use, because Redis makes a script's functions anew in every run.
local lanes
local function openLanes()
  if lanes then return lanes end
  lanes = {}
  -- Waiting jobs with a lock key. A key group (lane) is the waiting jobs of one key. At most one job of a key has the turn: it is active,
  -- or it is in the claim order (`wait`, `prio`), where claims find it. The other jobs stand behind it, in keys that claims never read: so
  -- a million of them cost a claim nothing.
  --   turns         by lock key: 'a' while a job of the key is active, else priority,member of the job that is in the claim order
  --   lane:<key>    the jobs behind it, by priority, then by place, as in `prio`
  --   behind:wait, behind:prio   the jobs behind of all keys, as they would be in `wait` and `prio`: for lists
  -- A key without a turn has an empty lane. Scripts report the jobs that came (`lineUp`) and left (`freeKey`); `arrange` gives the turns
  -- before anything is read.
  -- An entry is a list: priority, member of `prio` and of the lane, id of the job.
  -- These functions move entries: into and out of the claim order (`show`, `hide`), into and out of `behind:` (`putBehind`, `unhide`).
  -- Their writes are pending until `flush`.

  local shown, hidden, behind, unhidden = {}, {}, {}, {}

  -- Adds the entry to the pending writes `lists`, which has one list for jobs without a priority and one for jobs with a priority.
  local function note(lists, entry, scored)
    local plain = entry[1] == '0'
    lists[plain] = lists[plain] or {}
    local list = lists[plain]
    if scored then list[#list + 1] = plain and digits(entry[2]:sub(1, 16) - ORD_BIAS) or entry[1] end
    list[#list + 1] = plain and entry[3] or entry[2]
  end

  local function write(command, lists, prefix)
    for plain, list in pairs(lists) do
      many(command, key(prefix .. (plain and 'wait' or 'prio')), list)
      lists[plain] = nil
    end
  end

  function lanes.show(entry)
    note(shown, entry, true)
    turned = turned or {}
    turned[entry[3]] = true
  end

  function lanes.hide(entry) note(hidden, entry) end

  function lanes.unhide(entry) note(unhidden, entry) end

  function lanes.putBehind(lane, entries, but)
    local members = {}
    for i = 1, #entries do
      if entries[i] ~= but then
        members[#members + 1], members[#members + 2] = entries[i][1], entries[i][2]
        note(behind, entries[i], true)
      end
    end
    many('ZADD', key('lane:' .. lane), members)
  end

  function lanes.flushBehind() write('ZADD', behind, 'behind:') end

  function lanes.flush()
    write('ZREM', hidden, '')
    write('ZADD', shown, '')
    write('ZREM', unhidden, 'behind:')
    lanes.flushBehind()
  end
  -- Lock keys (see `lanes`): who has the turn of a key. `arrange` gives the turns of the keys that were touched. freed: lock keys whose
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
  return lanes
end
