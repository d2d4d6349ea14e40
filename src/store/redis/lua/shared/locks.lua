-- Locks of jobs. A lock is the token in the run text of its job, and an entry by fence in one of two sorted sets of its session: `bound`
-- (the lock dies with the session) or `ending` (the lock has its own end, and an entry in `ends`). The counter `active` counts locks.
-- An ended session stays stored while it holds a lock, because sweeps still read its owner and limits. `holders` lists all stored sessions.
local sessions = {}

-- The last call in a lane of a session: its seq, the seq of the last settle, and the results of that settle. These lanes number calls and
-- have nothing to do with lock keys. The name of the lane ('' or 1) is the suffix of its field names.
local function lastCall(seq, callSeq, results)
  return { seq = tonumber(seq or 0), seqText = seq, callSeq = callSeq, results = results }
end

-- Returns an open session: expires, its last calls by lane and, under suspicion, its expiry before that (`suspected`). Returns false if
-- the session has ended or does not exist.
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

-- Deletes an ended session if it holds nothing.
local function tidy(session)
  if openSession(session) then return end
  local held = call('EXISTS', key('bound:' .. session), key('ending:' .. session), key('held:' .. session), key('lined:' .. session))
  if held > 0 then return end
  call('UNLINK', key('s:' .. session), key('revoked:' .. session))
  call('ZREM', key('reaped'), session)
  call('SREM', key('holders'), session)
end

-- Scripts unlock jobs one by one; `flushUnlocked` removes them from the sets together. Jobs of one claim mostly finish together and in
-- order. Then their fences are a range, which one command removes without a search for each job.
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
