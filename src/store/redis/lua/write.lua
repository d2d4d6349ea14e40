-- Writing data, progress, logs, steps and events.

-- part: writes
-- Writes data, progress and logs of jobs, and records events of users. `write` describes the arguments, and `write-steps` in steps.lua the
-- steps.

-- Readers of older versions stop at a record that they do not know. So the event of a user ends its entry of the log: these readers miss
-- no other event.
local function tellOwn(name, text)
  tell(1, 'T', name, text)
  save()
  told, toldSize, toldEvents = {}, 0, 0
end

-- Returns the number of log rows after a write to logs, else -1.
local function writeText(job, kind, text, keep)
  local id, log = job.id, key('log:' .. job.id)
  if kind == 'd' then
    local whole = match(call('HGET', key('job'), id), '^[^%z]*%z[^%z]*%z[^%z]*%z') .. text
    call('HSET', key('job'), id, whole)
    if job.finished == '' then noteSize(#whole) end
  elseif kind == 'p' then
    call('HSET', key('progress'), id, text)
    set('sides', 1)
    if job.finished == '' then noteSize(#text) end
    tell(1, 'G', id, eventValue(text))
  elseif keep == 0 then
    call('UNLINK', log)
    return 0
  else
    if kind == 'l' then call('RPUSH', log, text) end
    if keep then call('LTRIM', log, -keep, -1) end
    return call('LLEN', log)
  end
  return -1
end

-- Carries out the writes of a call. writeStep: records a step, and returns its letter and the recorded value.
local function writeAll(writeStep)
  local replies = {}
  for at = 1, #ARGV, 5 do
    local kind, id, token, text, keep = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
    local job, letter, detail = kind ~= 'e' and find(id), 'd', -1
    if kind == 'e' then
      tellOwn(id, text)
    elseif not job then
      letter = 'm'
    elseif token ~= '' and (job.state ~= 'a' or '=' .. job.token ~= token) then
      letter = 'l'
    elseif kind == 's' then
      letter, detail = writeStep(job, token ~= '', keep, text)
    else
      detail = writeText(job, kind, text, tonumber(keep))
    end
    replies[#replies + 1], replies[#replies + 2] = letter, detail
  end
  return replies
end

-- name: write
-- use: clock tools counters queue jobs writes
-- Writes data, progress and logs of jobs, and records events of users. A write with a token applies only if that token owns the job now.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: for each write: kind (d data, p progress, l log row, c clear logs, e event of a user), job id (of an event: its name), `=` and the
--   token ('': no owner's write), text, keep (the newest log rows to keep; '': all).
-- Returns for each write a letter (d done, l lost, m missing), and the number of log rows after a write to logs, else -1.

local replies = writeAll()
save()
return replies
