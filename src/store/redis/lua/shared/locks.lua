-- Sessions, which own locks. The lock of a job is the token in the run text of its job, and an entry by fence in one of two sorted sets
-- of its session: `bound` (the lock dies with the session) or `ending` (the lock has its own end, and an entry in `ends`). The counter
-- `active` counts locks.
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
  call('UNLINK', key('s:' .. session), key('revoked:' .. session), key('cancelled:' .. session))
  call('ZREM', key('reaped'), session)
  call('SREM', key('holders'), session)
end
