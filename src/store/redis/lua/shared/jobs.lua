-- A job is two texts: `job`, which hardly ever changes (timestamp, name, options, data), and `run`, which every move rewrites. Each
-- kind of text is one hash with a field per job: a hash per job costs a command per job, where a batch needs one command this way
-- (0.12 µs a job instead of 0.6 µs). What few jobs have lies in hashes of its own: reason, stack, value, progress.
--
-- run: state,priority,ord,delay,made,started,stalls,added,processed,finished,fence,seq,ends,timed NUL session NUL by
--   state    w d a c f
--   ord      the front part of its member in `prio`
--   added … finished, ends   ms on Redis' clock
--   fence, session   of the owner or, in a finished job, of the one that finished it
--   ends     an end of the lock's own; timed 0: the lock lives as long as its session and at least until there
--   by       begins with = where there is one
local RUN = '^(%a),(%d*),(%d*),(%d*),(%d*),(%d*),(%d*),(%d*),(%d*),(%d*),(%d*),(%d*),(%d*),(%d)%z([^%z]*)%z(.*)$'

local function decode(id, text)
  local job = { id = id }
  job.state, job.priority, job.ord, job.delay, job.made, job.started, job.stalls, job.added, job.processed, job.finished,
    job.fence, job.seq, job.ends, job.timed, job.session, job.by = match(text, RUN)
  return job
end

local function encode(job)
  return concat({
    job.state, job.priority, job.ord, job.delay, job.made, job.started, job.stalls, job.added, job.processed, job.finished,
    job.fence, job.seq, job.ends, job.timed,
  }, ',') .. '\0' .. job.session .. '\0' .. job.by
end

local function find(id)
  local text = call('HGET', key('run'), id)
  return text and decode(id, text)
end

local function store(job) call('HSET', key('run'), job.id, encode(job)) end

local function tokenOf(job) return job.session .. ':' .. job.fence end

local STATES = { w = 'waiting', d = 'delayed', a = 'active', c = 'completed', f = 'failed' }
local SIDES = { 'reason', 'stack', 'value', 'progress' }

-- All that belongs to jobs that have left their place already.
local function erase(ids)
  many('HDEL', key('run'), ids)
  many('HDEL', key('job'), ids)
  for i = 1, #SIDES do many('HDEL', key(SIDES[i]), ids) end
  local prefix, logs = key('log:'), {}
  for i = 1, #ids do logs[i] = prefix .. ids[i] end
  for first = 1, #logs, AT_ONCE do call('UNLINK', unpack(logs, first, math.min(first + AT_ONCE - 1, #logs))) end
end
