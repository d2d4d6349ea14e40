-- Waiting jobs with a lock key. A key group (lane) is the waiting jobs of one key. At most one job of a key has the turn: it is active,
-- or it is in the claim order (`wait`, `prio`), where claims find it. The other jobs stand behind it, in keys that claims never read: so
-- a million of them cost a claim nothing.
--   turns         by lock key: 'a' while a job of the key is active, else priority,member of the job that is in the claim order
--   lane:<key>    the jobs behind it, by priority, then by place, as in `prio`
--   behind:wait, behind:prio   the jobs behind of all keys, as they would be in `wait` and `prio`: for lists
-- A key without a turn has an empty lane. Scripts report the jobs that came (`lineUp`) and left (`freeKey`); `arrange` gives the turns
-- before anything is read.
-- An entry is a list: priority, member of `prio` and of the lane, id of the job.
-- These functions move entries: into and out of the claim order (`show`, `hide`), into and out of `behind:` (`putBehind`, `unhide`). Their
-- writes are pending until `flush`.

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
