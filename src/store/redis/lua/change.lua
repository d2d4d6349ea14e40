-- use: clock counters queue jobs lanes places reopen
-- ARGV: of each change: job id, kind and two texts.
--   rc, rf   retry what completed or failed; 1 to reset made, 1 to reset started
--   p        promote
--   d        delay; ms
--   n        priority; number, 1 for lifo
-- Answers a letter for each: d done, m missing, s not in the state that the change starts from.
local results = {}
for at = 1, #ARGV, 4 do
  local kind, a, b = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local job, result = find(ARGV[at]), 's'
  if not job then
    result = 'm'
  elseif kind == 'r' .. job.state then
    take(job)
    reopen({ job })
    if a == '1' then job.made = '0' end
    if b == '1' then job.started = '0' end
    result = 'd'
  elseif kind == 'p' and job.state == 'd' then
    take(job)
    reopen({ job })
    result = 'd'
  elseif kind == 'd' and job.state == 'd' then
    take(job)
    tell(1, 'Y', job.id, putDelayed(job, a))
    result = 'd'
  elseif kind == 'n' then
    -- A job that does not wait keeps the priority for when it does.
    local waits = job.state == 'w'
    if waits then take(job) end
    job.priority = a
    if waits then putWaiting(job, b == '1') end
    touch()
    result = 'd'
  end
  if result == 'd' then store({ job }) end
  results[#results + 1] = result
end
flushPlaces()
save()
return concat(results)
