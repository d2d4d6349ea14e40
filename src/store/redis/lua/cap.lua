-- use: clock counters queue
-- ARGV: how many jobs may be active, or '' without a limit.
set('cap', ARGV[1] == '' and 0 or ARGV[1] + 1)
offer()
save()
return 1
