-- Locks of jobs.

-- part: locks
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

-- name: extend
-- use: clock tools counters queue jobs locks
-- Extends job locks: each gets its own end at now + durationMs.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: for each lock: job id, token, durationMs, and 1 if it leaves its session (it becomes a timed lock), else 0.
-- Returns a letter for each lock: d done, l lost, m missing, f finished with this token.

local ids = {}
for i = 1, #ARGV / 4 do ids[i] = ARGV[4 * i - 3] end
local texts, jobs, results = fetch(key('run'), ids), {}, {}
local moved, ends, extended = {}, {}, {}

-- Moves a lock from `bound` to `ending`: until now it lived as long as its session, from now on it has its own end.
local function move(job)
  local session = sessionOf(job.token)
  local lists = moved[session] or { bound = {}, ending = {} }
  moved[session] = lists
  lists.bound[#lists.bound + 1] = job.id
  lists.ending[#lists.ending + 1] = fenceOf(job.token)
  lists.ending[#lists.ending + 1] = job.id
end

for i = 1, #ids do
  local id = ids[i]
  -- If a call names a lock twice, the second extension starts from the result of the first.
  local job, token = jobs[id] or (texts[i] and decode(id, texts[i])), ARGV[4 * i - 2]
  if not job then
    results[i] = 'm'
  elseif token == '' or job.token ~= token then
    results[i] = 'l'
  elseif job.state ~= 'a' then
    results[i] = 'f'
  else
    if job.ends == '' then move(job) end
    if not jobs[id] then extended[#extended + 1] = job end
    jobs[id] = job
    job.ends = digits(ceil(now + ARGV[4 * i - 1]))
    if ARGV[4 * i] == '1' then job.timed = '1' end
    ends[#ends + 1], ends[#ends + 2] = job.ends, id
    results[i] = 'd'
  end
end
for session, lists in pairs(moved) do
  many('ZREM', key('bound:' .. session), lists.bound)
  many('ZADD', key('ending:' .. session), lists.ending)
end
many('ZADD', key('ends'), ends)
store(extended)
return concat(results)

-- name: job-locks
-- use: clock tools counters queue jobs
-- Reads the locks of jobs and their owners.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: job ids.
-- Returns for each job: session, fence, since, endsInMs, and host, pid, name, instance of the owner; 0 if the job is not active.

local replies = {}
for i = 1, #ARGV do
  local job = find(ARGV[i])
  replies[i] = 0
  if job and job.state == 'a' then
    local session = sessionOf(job.token)
    local host, pid, name, instance, expires, ended =
      unpack(call('HMGET', key('s:' .. session), 'host', 'pid', 'name', 'instance', 'expires', 'ended'))
    local ends = tonumber(job.ends)
    -- A lock that was extended (timed 0) lives as long as its session, and at least until its own end.
    local ending
    if job.timed == '1' or ended then ending = ends or tonumber(expires) else ending = math.max(ends or 0, tonumber(expires)) end
    replies[i] = { session, fenceOf(job.token), job.processed, floor(ending - now), host, pid, name, instance }
  end
end
return replies

-- name: owned
-- use: clock tools run-texts
-- Lists the job locks of a session, one page per call.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: session, kind (bound or ending: see `locks`), the fence to continue after or '', the locks to return at most.
-- Returns columns: job ids, fences, seqs of the claims.

local from = ARGV[3] == '' and '-inf' or '(' .. ARGV[3]
local held = call('ZRANGEBYSCORE', key(ARGV[2] .. ':' .. ARGV[1]), from, '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[4])
local ids, fences, seqs = {}, {}, {}
for i = 1, #held, 2 do ids[#ids + 1], fences[#fences + 1] = held[i], held[i + 1] end
local texts = fetch(key('run'), ids)
for i = 1, #ids do seqs[i] = texts[i] and match(texts[i], HELD_UNDER) or '0' end
return { ids, fences, seqs }

-- name: losses
-- use: clock tools
-- Reads which owner lost each job.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: job ids.
-- Returns LostBy (JSON) of each job, nil if there is none.

return fetch(key('lost'), ARGV)
