-- Notices for the owners of locks. The next renewal of a session returns them. Each session numbers its notices upwards.
--   revoked:<session>     number NUL job id NUL fence NUL reason, by number
--   cancelled:<session>   the same for cancelled jobs. Processes of an older version do not read it, and run these jobs to their end
-- In s:<session>, `revoked` is the number of the last notice, and `acked` of the last one that the owner has processed.

-- kind: revoked or cancelled. The jobs are active.
local function notify(kind, jobs, reason)
  local bySession = {}
  for i = 1, #jobs do
    local session = sessionOf(jobs[i].token)
    bySession[session] = bySession[session] or {}
    table.insert(bySession[session], jobs[i])
  end
  for session, list in pairs(bySession) do
    local before, notices = call('HINCRBY', key('s:' .. session), 'revoked', #list) - #list, {}
    for i = 1, #list do
      local number = digits(before + i)
      notices[2 * i - 1], notices[2 * i] = number, concat({ number, list[i].id, fenceOf(list[i].token), reason }, '\0')
    end
    many('ZADD', key(kind .. ':' .. session), notices)
  end
end
