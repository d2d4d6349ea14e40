-- use: clock tools expiry
-- Opens a session. Its id must be new: a repeated id is an error.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: id, host, pid, name, durationMs, maxStalls, presence ('': no crash hint), instance, slots, graceMs.
local id = ARGV[1]
local own = key('s:' .. id)
if call('EXISTS', own) == 1 then
  return { err = 'HOLDFAST Session ' .. id .. ' was opened before: give every session an id of its own.' }
end
call('HSET', own, 'host', ARGV[2], 'pid', ARGV[3], 'name', ARGV[4], 'duration', ARGV[5], 'maxStalls', ARGV[6],
  'instance', ARGV[8], 'grace', ARGV[10], 'since', floor(now), 'renewals', 0, 'seq', 0, 'revoked', 0)
expireAt(id, ceil(now + ARGV[5]))
call('SADD', key('holders'), id)
call('HSET', key('slots'), id, ARGV[9])
if ARGV[7] ~= '' then call('HSET', key('presence'), id, ARGV[7]) end
return 1
