-- Waiting jobs with a lock key. A key group (lane) is the waiting jobs of one key. At most one job of a key has the turn: it is active,
-- or it is in the claim order (`wait`, `prio`), where claims find it. The other jobs stand behind it, in keys that claims never read: so
-- a million of them cost a claim nothing.
--   turns         by lock key: 'a' while a job of the key is active, else priority,member of the job that is in the claim order
--   lane:<key>    the jobs behind it, by priority, then by place, as in `prio`
--   behind:wait, behind:prio   the jobs behind of all keys, as they would be in `wait` and `prio`: for lists
-- A key without a turn has an empty lane. Scripts report the jobs that came (`lineUp`) and left (`freeKey`); `arrange` gives the turns
-- before anything is read.
-- The functions are made on first use, because Redis makes a script's functions anew in every run. Jobs without a lock key must not pay
-- for these (they were a sixth of a lone settle).
local ORD_BIAS = 4e15
local lanes
local function openLanes()
  if lanes then return lanes end
  -- freed: lock keys whose job has left active or the claim order. comers: by lock key, the entries that came to wait.
  -- An entry is a list: priority, member of `prio` and of the lane, id of the job.
  local freed, comers, anyTouched = {}, {}, false
  -- Pending writes. shown, hidden: into and out of the claim order; behind, unhidden: into and out of `behind:`.
  local shown, hidden, behind, unhidden = {}, {}, {}, {}

  local function freeKey(lockKey)
    freed[lockKey] = true
    anyTouched = true
  end

  -- Records that a job has come to wait at this place. Returns the place as 16 digits, for `ord` of the job.
  local function lineUp(lockKey, id, priority, place)
    local ord, list = format('%016.0f', place + ORD_BIAS), comers[lockKey]
    local entry = { priority, ord .. id, id }
    if list then list[#list + 1] = entry else comers[lockKey] = { entry } end
    anyTouched = true
    return ord
  end

  local function comesBefore(a, b)
    if a[1] ~= b[1] then return tonumber(a[1]) < tonumber(b[1]) end
    return a[2] < b[2]
  end

  local function turnOf(text)
    if not text or text == 'a' then return nil end
    local priority, member = match(text, '^(%d+),(.*)$')
    return { priority, member, member:sub(17) }
  end

  -- Adds the entry to the pending writes `lists`, which has one list for jobs without a priority and one for jobs with a priority.
  local function note(lists, entry, scored)
    local plain = entry[1] == '0'
    local list = lists[plain]
    if not list then
      list = {}
      lists[plain] = list
    end
    local size = #list
    if scored then
      size = size + 1
      list[size] = plain and digits(entry[2]:sub(1, 16) - ORD_BIAS) or entry[1]
    end
    list[size + 1] = plain and entry[3] or entry[2]
  end

  local function write(command, lists, prefix)
    for plain, list in pairs(lists) do
      many(command, key(prefix .. (plain and 'wait' or 'prio')), list)
      lists[plain] = nil
    end
  end

  local function flushEntries()
    write('ZREM', hidden, '')
    write('ZADD', shown, '')
    write('ZREM', unhidden, 'behind:')
    write('ZADD', behind, 'behind:')
  end

  local function show(entry)
    note(shown, entry, true)
    turned = turned or {}
    turned[entry[3]] = true
  end

  local function putBehind(lockKey, entries, but)
    local members = {}
    for i = 1, #entries do
      if entries[i] ~= but then
        members[#members + 1], members[#members + 2] = entries[i][1], entries[i][2]
        note(behind, entries[i], true)
      end
    end
    many('ZADD', key('lane:' .. lockKey), members)
  end

  local function first(entries, other)
    for i = 1, #entries do
      if not other or comesBefore(entries[i], other) then other = entries[i] end
    end
    return other
  end

  -- Gives the turn after a turn has ended: to the first entry among the lane and the comers. Returns the entry, nil if there is none.
  local function nextTurn(lockKey, came)
    if came then
      putBehind(lockKey, came)
      -- Write them now, because the entry that gets the turn may be one of them.
      write('ZADD', behind, 'behind:')
    end
    local popped = call('ZPOPMIN', key('lane:' .. lockKey))
    if not popped[1] then return nil end
    local entry = { popped[2], popped[1], popped[1]:sub(17) }
    note(unhidden, entry)
    show(entry)
    return entry
  end

  -- Compares the comers with the job that has the turn, unless that job is active. Returns the entry that takes the turn over, or nil.
  local function sameTurn(lockKey, came, turn)
    local before = turnOf(turn)
    local chosen = turn ~= 'a' and first(came, before) or nil
    if #came > 1 or came[1] ~= chosen then putBehind(lockKey, came, chosen) end
    if chosen == before then return nil end
    show(chosen)
    if before then
      note(hidden, before)
      putBehind(lockKey, { before })
    end
    return chosen
  end

  local function arrange()
    if not anyTouched then return end
    local given, size, ended, names = {}, 0, {}, {}
    local function give(lockKey, entry)
      given[size + 1], given[size + 2] = lockKey, entry[1] .. ',' .. entry[2]
      size = size + 2
    end
    for lockKey in pairs(freed) do
      local entry = nextTurn(lockKey, comers[lockKey])
      if entry then give(lockKey, entry) else ended[#ended + 1] = lockKey end
      comers[lockKey] = nil
    end
    for lockKey in pairs(comers) do names[#names + 1] = lockKey end
    local turns = fetch(key('turns'), names)
    for i = 1, #names do
      local entry = sameTurn(names[i], comers[names[i]], turns[i])
      if entry then give(names[i], entry) end
    end
    freed, comers, anyTouched = {}, {}, false
    flushEntries()
    many('HSET', key('turns'), given)
    many('HDEL', key('turns'), ended)
  end

  -- Removes a waiting job from the claim order or from `behind:`. The caller has called `arrange` before.
  local function leaveLine(job)
    local entry = { job.priority, job.ord .. job.id, job.id }
    if call('HGET', key('turns'), job.key) == entry[1] .. ',' .. entry[2] then
      note(hidden, entry)
      freeKey(job.key)
    else
      call('ZREM', key('lane:' .. job.key), entry[2])
      note(unhidden, entry)
    end
    flushEntries()
  end

  -- Takes the turn for a waiting job that becomes active now, out of order. Returns false if another job of its key is active.
  local function takeTurn(job)
    local turn = call('HGET', key('turns'), job.key)
    if turn == 'a' then return false end
    leaveLine(job)
    freed[job.key] = nil
    local before = turnOf(turn)
    if before and before[2] ~= job.ord .. job.id then
      note(hidden, before)
      putBehind(job.key, { before })
      flushEntries()
    end
    call('HSET', key('turns'), job.key, 'a')
    return true
  end

  lanes = { lineUp = lineUp, freeKey = freeKey, leaveLine = leaveLine, takeTurn = takeTurn, arrange = arrange }
  return lanes
end

local function anyBehind() return queue.keys == 1 and call('EXISTS', key('behind:wait'), key('behind:prio')) > 0 end
