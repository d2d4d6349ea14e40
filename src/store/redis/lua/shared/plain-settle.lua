-- Fast path for most settles and claims: a worker completes jobs that are kept, if any, and claims the next jobs, in a queue without due
-- jobs, lock keys, limits, rate, cap or pause. Groups may be in line if none of them rests or has settings of its own. The first
-- line of settle.lua lists the parts of the fast path. They share these variables and make no function: Redis makes a script's functions
-- anew in every run. Those of settle.lua, with their garbage, were 45 of the 130 µs of a lone settle; three functions here were 1.5 of 29 µs.
-- The fast path reads everything before it writes anything. If a call does not fit, it leaves before it has changed anything, and
-- settle.lua carries the call out. Both paths must leave the same data and return the same reply.
-- Tables begin with room for one job, because a table that grows is reallocated.
-- fits: the call fits the fast path so far. ids, claims: the jobs to claim, and their number. size: the number of jobs to complete. texts:
-- the run texts of the jobs to complete, then of those to claim. waiting: further jobs wait. moment: now as digits. place: the first tick.
-- grouped: groups may be in line or lose active jobs: see plain-groups.lua. leaving: by job to complete, the key of its group.
-- children: by job to complete, whether it is marked and has no group; nil if none is.
local reply, told, events, offers = nil, { nil, nil, nil, nil, nil, nil }, 0, false
local fits, session, seq, lane, most, size = false, ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[8]), tonumber(ARGV[11])
local due, ids, claims, waiting, settled, texts, runs, owner, moment, place
local grouped, leaving, children = false, nil, nil

if ARGV[4] == '1' and ARGV[10] == '' and (ARGV[1] == '' and ARGV[11] == '0' or session == ARGV[1] and seq == ARGV[2]
  and lane == ARGV[3] and ARGV[12] == 'c' and ARGV[13] == ARGV[11] and ARGV[14] == '' and ARGV[15] == ARGV[1] .. ':') then
  repeat
    -- More than 1000 jobs would not fit on Lua's stack.
    if size > 1000 or most > 1000 or most == 0 then break end
    if paused ~= 0 or keys ~= 0 or cap ~= 0 or limitedUntil > now or windowEnds > now then break end
    -- With the first completed job of a minute, metrics write the minute before.
    if layout > 3 and (rateMax > 0 or points > 0 and size > 0 and completedMinute ~= floor(now / 60000)) then break end
    if layout > 4 then
      -- Most queues have none of these keys. The reply has to say that a schedule is owing, or that messages wait.
      local resting, owing, outbox = base .. ':resting', base .. ':owing', base .. ':outbox'
      local found = call('EXISTS', base .. ':groups', base .. ':ring', base .. ':aside', resting, owing, outbox)
      grouped = found > 0
      if grouped and (call('EXISTS', resting, owing, outbox) > 0 or recheck > 0 or groupMax > 0 or size > 200 or most > 200) then break end
    elseif layout > 2 and call('EXISTS', base .. ':owing') == 1 then
      break
    end
    due = delays ~= 0 and tonumber(call('ZRANGE', base .. ':delayed', 0, 0, 'WITHSCORES')[2])
    if due and due <= micros then break end

    local expires, ended, suspected, last =
      unpack(call('HMGET', base .. ':s:' .. session, 'expires', 'ended', 'suspected', 'seq' .. lane))
    if not expires or ended or suspected or tonumber(expires) <= now or tonumber(seq) <= tonumber(last or 0) then break end

    ids = call('ZRANGE', base .. ':wait', 0, most)
    claims = #ids
    waiting = claims > most
    if waiting then
      ids[claims], claims = nil, most
    elseif call('EXISTS', base .. ':prio') == 1 then
      break
    end
    -- Jobs that may exceed a reply have to be measured. One job needs no byte budget: a claim returns at least one.
    if (grouped and most or claims) > 1 and (grouped and most or claims) * largest > REPLY_BYTES then break end

    settled, texts, runs = { nil }, { nil, nil }, { nil, nil, nil, nil }
    for i = 1, size do settled[i], texts[i] = ARGV[13 + 3 * i], ARGV[13 + 3 * i] end
    for i = 1, grouped and 0 or claims do texts[size + i] = ids[i] end
    if #texts > 0 then texts = call('HMGET', base .. ':run', unpack(texts)) end
    owner, moment, place = session .. ':', format(DIGITS, floor(now)), tick < micros and micros or tick + 1
    fits = true
  until true
end
