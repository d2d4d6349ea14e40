-- use: clock
-- ARGV: the caller. Its last add was answered, and it makes no more calls.
return call('UNLINK', key('added:' .. ARGV[1]))
