-- use: clock counters queue
-- ARGV: durationMs; 0 lifts the window of limited claims too.
if ARGV[1] == '0' then
  set('limitedUntil', 0)
  set('windowEnds', 0)
else
  set('limitedUntil', ceil(now + ARGV[1]))
end
offer()
save()
return 1
