-- A job is two texts: `job`, which hardly ever changes (timestamp, name, options, data), and `run`, which every move rewrites.
-- Each kind of text is one hash with a field per job: a hash per job costs a command per job, where a batch needs one command this
-- way (0.12 µs a job instead of 0.6 µs). What few jobs have lies in hashes of its own: reason, stack, progress, lost, and
-- value, unless it is null: many handlers return nothing, and a field of a hash is 0.6 µs of a settle.
--
-- run: state,seq,ends,timed,finished,ord,delay,made,started,priority,stalls,added,processed NUL token NUL by, and NUL key where
-- there is a lock key
--   state    w d a c f
--   seq      of the claim, while it is active
--   ends     an end of the lock's own; timed 0: the lock lives as long as its session and at least until there
--   ord      its place as it begins members of `prio` and of lanes, while it waits with a priority or a key
--   ends, finished, added, processed   ms on Redis' clock
--   token    of the owner or, in a finished job, of the one that finished it: session:fence
--   by       begins with = where there is one
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

-- The lock key at the end of a run, if there is one. Found without a pattern, which takes longer.
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

-- All that belongs to jobs that have left their place already.
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
