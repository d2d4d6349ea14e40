-- Locks of jobs. A lock is the token in its job's run, and an entry by fence in one of two sorted sets of its session: `bound`
-- (dies with the session) or `ending` (has an end of its own, and an entry in `ends`). `active` counts them. A session that was
-- ended stays as long as it holds anything, because its owner and limits are still asked for; `holders` names all.
local sessions = {}

-- Lanes of a session's calls (not those of lock keys): what the names of their fields end in. Of each: the number of the last call,
-- that of the last settle, and the results that it got.
local function lastCall(seq, callSeq, results)
  return { seq = tonumber(seq or 0), seqText = seq, callSeq = callSeq, results = results }
end

-- expires, its last calls by lane and, under suspicion, its expiry before that, of an open session; false of any other.
local function openSession(id)
  local session = sessions[id]
  if session == nil then
    local expires, ended, suspected, seq, callSeq, results, seq1, callSeq1, results1 = unpack(call('HMGET', key('s:' .. id),
      'expires', 'ended', 'suspected', 'seq', 'callSeq', 'results', 'seq1', 'callSeq1', 'results1'))
    session = expires and not ended and {
      expires = tonumber(expires), suspected = suspected,
      calls = { [''] = lastCall(seq, callSeq, results), ['1'] = lastCall(seq1, callSeq1, results1) },
    }
    sessions[id] = session
  end
  return session
end

-- Forgets a session that has ended, once it holds nothing.
local function tidy(session)
  if openSession(session) then return end
  local held = call('EXISTS', key('bound:' .. session), key('ending:' .. session), key('held:' .. session), key('lined:' .. session))
  if held > 0 then return end
  call('UNLINK', key('s:' .. session), key('revoked:' .. session))
  call('ZREM', key('reaped'), session)
  call('SREM', key('holders'), session)
end

-- Jobs are unlocked one by one and taken out of the sets together. Those of one claim mostly end together, in their order: then they
-- are a range of fences, which is taken out without a search for each.
local freed, freedEnds, freedCount = {}, {}, 0
local function free(id, session, ends, fence)
  freedCount = freedCount + 1
  local lists = freed[session]
  if not lists then
    lists = { bound = {}, ending = {}, first = fence, next = fence }
    freed[session] = lists
  end
  if ends == '' then
    local bound = lists.bound
    bound[#bound + 1] = id
    lists.next = lists.next == fence and fence + 1
  else
    local ending = lists.ending
    ending[#ending + 1] = id
    freedEnds[#freedEnds + 1] = id
  end
end

local function unlock(job)
  free(job.id, sessionOf(job.token), job.ends, tonumber(fenceOf(job.token)))
  if job.key then openLanes().freeKey(job.key) end
  job.seq, job.ends, job.timed, job.token = '', '', '0', ''
end

local function flushUnlocked()
  if freedCount == 0 then return end
  set('active', queue.active - freedCount)
  vacated = queue.cap > 0
  many('ZREM', key('ends'), freedEnds)
  for session, lists in pairs(freed) do
    local bound = lists.bound
    if #bound > 1 and lists.next == lists.first + #bound then
      call('ZREMRANGEBYSCORE', key('bound:' .. session), digits(lists.first), digits(lists.next - 1))
    else
      many('ZREM', key('bound:' .. session), bound)
    end
    many('ZREM', key('ending:' .. session), lists.ending)
    tidy(session)
  end
  freed, freedEnds, freedCount = {}, {}, 0
end
