-- Locks of jobs. A lock is the session and fence in its job's run, its job's place in `active`, and an entry in one of two sets of its
-- session: `bound` (dies with the session) or `ending` (has an end of its own, and an entry in `ends`).
-- A session that was ended stays as long as it holds anything, because its owner and limits are still asked for.
local function isOpen(session) return call('ZSCORE', key('sessions'), session) end

local function tidy(session)
  if isOpen(session) or call('EXISTS', key('bound:' .. session), key('ending:' .. session)) > 0 then return end
  call('UNLINK', key('s:' .. session), key('revoked:' .. session))
  call('ZREM', key('reaped'), session)
end

-- Jobs are unlocked one by one and taken out of the sets together.
local freed, freedEnds, freedOf, freedSessions = {}, {}, {}, {}
local function unlock(job)
  freed[#freed + 1] = job.id
  local holder = (job.ends == '' and 'bound:' or 'ending:') .. job.session
  local list = freedOf[holder]
  if not list then
    list = {}
    freedOf[holder] = list
    freedSessions[job.session] = true
  end
  list[#list + 1] = job.id
  if job.ends ~= '' then freedEnds[#freedEnds + 1] = job.id end
  job.fence, job.seq, job.ends, job.timed, job.session = '', '', '', '0', ''
end

local function flushUnlocked()
  many('ZREM', key('active'), freed)
  many('ZREM', key('ends'), freedEnds)
  for holder, list in pairs(freedOf) do many('ZREM', key(holder), list) end
  for session in pairs(freedSessions) do tidy(session) end
  freed, freedEnds, freedOf, freedSessions = {}, {}, {}, {}
end
