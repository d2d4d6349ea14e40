-- use: clock tools counters queue
-- Arms a queue: its next change of this kind is published.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: kind (jobs, locks or events).
-- Returns the version. A caller that knows an older version has missed a change.
local version, armed = 'version', 'armed'
if ARGV[1] ~= 'events' then version, armed = ARGV[1] .. 'Version', ARGV[1] .. 'Armed' end
if queue[armed] == 0 then
  set(armed, 1)
  save()
end
return digits(queue[version])
