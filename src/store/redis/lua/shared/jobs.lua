-- How a job is stored. A job is two texts: `job`, which rarely changes (timestamp, name, options, data), and `run`, which every state
-- change rewrites. Each kind of text is one hash with a field per job, so a batch needs one command (0.12 µs a job). With a hash per
-- job, each job would need its own command (0.6 µs). Texts that few jobs have are in their own hashes: reason, stack, progress, lost
-- and value. A value of null is not stored: many handlers return nothing, and a field of a hash is 0.6 µs of a settle.
--
-- run: state,seq,ends,timed,finished,ord,delay,made,started,priority,stalls,added,processed NUL token NUL by, and with a lock key NUL key
--   state    w waiting, d delayed, a active, c completed, f failed
--   seq      seq of the claim, while the job is active
--   ends     the lock's own end. timed 1: the lock ends then; timed 0: it lives as long as its session, and at least until `ends`
--   ord      the place as 16 digits, which begin the members of `prio` and of key groups; only while the job waits with a priority or
--            a lock key
--   ends, finished, added, processed   ms on Redis' clock
--   token    session:fence of the owner; in a finished job, of the owner that finished it
--   by       `=` and processedBy, the name that the claim gave; empty if there is none
local RUN = '^(%a),(%d*),(%d*),(%d),(%d*),(%d*),(%d*),(%d*),(%d*),(%d*),(%d*),(%d*),(%d*)%z([^%z]*)%z([^%z]*)(.*)$'

local function decode(id, text)
  local job, tail = { id = id }, nil
  job.state, job.seq, job.ends, job.timed, job.finished, job.ord, job.delay, job.made, job.started, job.priority, job.stalls,
    job.added, job.processed, job.token, job.by, tail = match(text, RUN)
  if tail ~= '' then job.key = tail:sub(2) end
  return job
end

local function encode(job)
  return concat({
    job.state, job.seq, job.ends, job.timed, job.finished, job.ord, job.delay, job.made, job.started, job.priority, job.stalls,
    job.added, job.processed,
  }, ',') .. '\0' .. job.token .. '\0' .. job.by .. (job.key and '\0' .. job.key or '')
end

-- Returns the lock key at the end of a run text, or nil. It uses `find` without a pattern, which is faster.
local function keyIn(run)
  if queue.keys == 0 then return nil end
  local at = 0
  for _ = 1, 3 do
    at = string.find(run, '\0', at + 1, true)
    if not at then return nil end
  end
  return run:sub(at + 1)
end

local function sessionOf(token) return match(token, '^(.*):%d+$') end

local function fenceOf(token) return match(token, '%d+$') end

local function find(id)
  local text = call('HGET', key('run'), id)
  return text and decode(id, text)
end

local function jobsOf(ids)
  local texts, jobs = fetch(key('run'), ids), {}
  for i = 1, #ids do
    if texts[i] then jobs[#jobs + 1] = decode(ids[i], texts[i]) end
  end
  return jobs
end

local function store(jobs)
  local runs = {}
  for i = 1, #jobs do runs[2 * i - 1], runs[2 * i] = jobs[i].id, encode(jobs[i]) end
  many('HSET', key('run'), runs)
end

local STATES = { w = 'waiting', d = 'delayed', a = 'active', c = 'completed', f = 'failed' }
local SIDES = { 'reason', 'stack', 'progress', 'lost' }

-- Deletes everything that belongs to jobs. The caller has removed them from their places before.
local function erase(ids)
  if #ids == 0 then return end
  many('HDEL', key('run'), ids)
  many('HDEL', key('job'), ids)
  many('HDEL', key('value'), ids)
  if queue.sides == 1 then
    for i = 1, #SIDES do many('HDEL', key(SIDES[i]), ids) end
  end
  local prefix, logs = key('log:'), {}
  for i = 1, #ids do logs[i] = prefix .. ids[i] end
  for first = 1, #logs, AT_ONCE do call('UNLINK', unpack(logs, first, math.min(first + AT_ONCE - 1, #logs))) end
end
