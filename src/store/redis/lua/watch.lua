-- use: clock counters queue
-- ARGV: jobs, locks or events. Arms the queue for them: the next change is published. Answers the version, for a change that came before.
local version, armed = 'version', 'armed'
if ARGV[1] ~= 'events' then version, armed = ARGV[1] .. 'Version', ARGV[1] .. 'Armed' end
if queue[armed] == 0 then
  set(armed, 1)
  save()
end
return digits(queue[version])
