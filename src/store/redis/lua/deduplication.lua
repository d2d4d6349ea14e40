-- Deduplication: the entries that name the owners of deduplication ids.

-- part: entries
-- Entries of deduplication, made on first use: see `lanes` in keys.lua.
local entries
local function openEntries()
  if entries then return entries end
  entries = {}
  -- Marked jobs, and the entries of deduplication. The state letter of a marked job is a capital: more is to do when it leaves a state.
  --   extra       by id of a marked job: its marks as a number (see store/marks.ts), a comma, and its extras (JSON)
  --   dedup       by deduplication id, the entry: ends NUL owner NUL draft
  --     ends      ms on Redis' clock; empty if the entry ends with its owner
  --     draft     a job to add when the owner ends: id NUL flags NUL marks and extras NUL text (see add.lua); empty if there is none
  --   dedupEnds   deduplication ids by `ends`

  function entries.get(id)
    local ends, owner, draft = match(call('HGET', key('dedup'), id) or '', '^([^%z]*)%z([^%z]*)%z(.*)$')
    return owner and { id = id, ends = tonumber(ends), owner = owner, draft = draft }
  end

  -- Writes an entry. It has no end and no draft unless these are given.
  function entries.set(id, owner, ends, draft)
    call('HSET', key('dedup'), id, (ends and digits(ends) or '') .. '\0' .. owner .. '\0' .. (draft or ''))
    if ends then call('ZADD', key('dedupEnds'), digits(ends), id) else call('ZREM', key('dedupEnds'), id) end
  end

  function entries.delete(ids)
    many('HDEL', key('dedup'), ids)
    many('ZREM', key('dedupEnds'), ids)
  end

  -- Deletes entries whose end has passed.
  function entries.sweep(limit)
    entries.delete(call('ZRANGEBYSCORE', key('dedupEnds'), '-inf', now, 'LIMIT', 0, limit))
  end

  -- Returns the entry of an id if it counts, and its owner. An entry without an end counts while its owner exists and has not finished.
  function entries.counting(id)
    local entry = entries.get(id)
    local owner = entry and find(entry.owner)
    local counts = entry and (entry.ends or owner and owner.finished == '') and (entry.ends or math.huge) > now
    if counts then return entry, owner end
  end

  -- Returns the deduplication id of a marked job; nil if it has none.
  function entries.idOf(job) return extraOf(call('HGET', key('extra'), job.id), UNIQUE, 'd') end

  -- Returns the entry that a marked job owns.
  function entries.ownedBy(job)
    local id = entries.idOf(job)
    local entry = id and entries.get(id)
    return entry and entry.owner == job.id and entry
  end
  return entries
end

-- name: forget-entries
-- use: clock tools run-texts counters queue jobs marks entries
-- Deletes entries of deduplication that count, with their drafts. A sweep deletes the others.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: owner ('': any; else `=` and the id of the job that must own an entry), then deduplication ids.
-- Returns how many of the deleted entries counted.

local deleted = 0
for i = 2, #ARGV do
  local entry = openEntries().counting(ARGV[i])
  if entry and (ARGV[1] == '' or ARGV[1] == '=' .. entry.owner) then
    entries.delete({ entry.id })
    deleted = deleted + 1
  end
end
return deleted
