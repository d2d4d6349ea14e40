-- Puts a new job into the queue. The caller stores its texts.
local function nameIn(text) return match(text, '^[^%z]*%z([^%z]*)') end

-- flags: see add.lua. The job waits at `place`, unless it is delayed or goes to the front. Returns its run text.
local function enter(id, flags, text, place, marked)
  local priority, delay, lifo, rest = match(flags == '' and '0,0,0' or flags, '^(%d*),(%d*),(%d)(.*)$')
  local job = { id = id, priority = priority, ord = '' }
  noteSize(#text)
  if rest:sub(1, 1) == ';' then
    job.group = rest:sub(2)
    openGroups()
  elseif rest ~= '' then
    job.key = rest:sub(2)
    if queue.keys == 0 then set('keys', 1) end
  end
  if delay ~= '0' then
    tell(2, 'D', id, nameIn(text), putDelayed(job, delay))
  else
    putWaiting(job, lifo == '1', lifo ~= '1' and place)
    tell(2, 'N', id, nameIn(text))
  end
  local letter = marked and job.state:upper() or job.state
  local tail = job.key and '\0' .. job.key or job.group and '\0\0' .. job.group or ''
  return format(ENTERED_RUN, letter, job.ord, job.delay, priority) .. digits(floor(now)) .. ',\0\0' .. tail
end

-- Raises the layout of a queue with a marked job, as far as its marks need. Processes of versions that do not know them must not touch the
-- queue any more.
local function raiseForMarks(extra)
  if queue.layout < 2 then set('layout', 2) end
  -- Parents, children, and jobs with a letter: see families.lua.
  local marks = queue.layout < 6 and tonumber(match(extra, '^%d+'))
  if not marks or marks < 64 and marks % 8 < 2 then return end
  settings = settings or { $each{settings # = 0} }
  set('layout', 6)
end

-- Puts a new marked job into the queue and stores it at once: deduplication looks at the owner of an entry.
local function enterMarked(id, flags, text, extra, place)
  call('HSET', key('run'), id, enter(id, flags, text, place, true))
  call('HSET', key('job'), id, text)
  call('HSET', key('extra'), id, extra)
  raiseForMarks(extra)
end
