-- How a job is stored. A job is two texts: `job`, which rarely changes (timestamp, name, options, data), and `run`, which every state
-- change rewrites. Each kind of text is one hash with a field per job, so a batch needs one command (0.12 µs a job). With a hash per
-- job, each job would need its own command (0.6 µs). Texts that few jobs have are in their own hashes: reason, stack, progress, lost
-- and value. A value of null is not stored: many handlers return nothing, and a field of a hash is 0.6 µs of a settle.
-- run-texts.lua describes the run text.
local RUN = '^$run{state..processed state=(%a) timed=(%d) *=(%d*)}%z([^%z]*)%z([^%z]*)(.*)$'

local function decode(id, text)
  local job, tail = { id = id }, ''
  $each{run job.#}, job.token, job.by, tail = match(text, RUN)
  if not tail then return job end
  local letter = job.state
  job.state = letter:lower()
  job.marked = letter ~= job.state
  if tail:byte(2) == 0 then job.group = tail:sub(3) elseif tail ~= '' then job.key = tail:sub(2) end
  return job
end

local function encode(job)
  local tail = job.key and '\0' .. job.key or job.group and '\0\0' .. job.group or ''
  local text = concat({ $each{run job.#} }, ',') .. '\0' .. job.token .. '\0' .. job.by .. tail
  return job.marked and text:sub(1, 1):upper() .. text:sub(2) or text
end

-- Returns what a claim returns of a run: made,started,priority,stalls,added,processed.
local function numbersOf(job)
  return concat({ job.made, job.started, job.priority, job.stalls, job.added, job.processed }, ',')
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

-- Places may be below zero. With this bias, their 16 digits sort as the numbers do.
local ORD_BIAS = 4e15

local STATES = { w = 'waiting', d = 'delayed', a = 'active', c = 'completed', f = 'failed', p = 'waiting-children' }
