-- use: clock tools run-texts
-- Lists the job locks of a session, one page per call.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: session, kind (bound or ending: see locks.lua), the fence to continue after or '', the locks to return at most.
-- Returns columns: job ids, fences, seqs of the claims.
local from = ARGV[3] == '' and '-inf' or '(' .. ARGV[3]
local held = call('ZRANGEBYSCORE', key(ARGV[2] .. ':' .. ARGV[1]), from, '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[4])
local ids, fences, seqs = {}, {}, {}
for i = 1, #held, 2 do ids[#ids + 1], fences[#fences + 1] = held[i], held[i + 1] end
local texts = fetch(key('run'), ids)
for i = 1, #ids do seqs[i] = texts[i] and match(texts[i], HELD_UNDER) or '0' end
return { ids, fences, seqs }
