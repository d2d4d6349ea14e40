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
