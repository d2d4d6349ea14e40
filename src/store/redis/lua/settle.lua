-- use: clock run-texts counters plain-settle plain-complete plain-children plain-groups plain-turns plain-asides plain-grant plain-write plain-group-write plain-reply plain-ends plain-save tools queue jobs groups lanes keys places enter marks marking families entries schedules metrics locks leave expiry reassure retention failing special claim-places claim claim-request outcomes
-- Settles outcomes, then claims; either part may be absent. A repeated settle (same caller and seq) returns the first results.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: 1 caller ('': none, as in a claim alone), 2 seq, 3 lane, 4 withClaim (1 or 0), 5–10 the claim request (see `claimRequest` in
--   claim-request.lua; empty texts without a claim), 11 number of outcomes, from 12 on the outcomes in series, last the job ids of the claim
--   or, without a list of ids, what plain-children.lua reads.
--   series    consecutive outcomes of one kind and one session with the same `keep`: kind, size, keep, owner, then for each outcome
--             its job id, its fence and the texts of its kind
--   owner     the token up to its fence: session and colon
--   kind      c completed: value · f failed: reason, stacktrace · e failed with attempts left: reason, stacktrace
--             r retry: reason, stacktrace, delayMs, lifo · d delay: delayMs · w release · u return
--             s delay that records a step: delayMs, name, value, = and the signal that the job awaits ('': none)
--             k waits for its children: the child (queue LF id), '' for all
--   keep      '' keeps all, 0 keeps none, else count,ageMs, each empty if it does not limit
-- Returns a text with a letter for each outcome (d done, l lost, m missing, p pending, u unsuccessful, r ready, f full) and, if the script has
-- sent messages, NUL and the receiving queues with NUL between. Then follows the reply of `claim` in claim.lua.
local caller, callSeq, lane, withClaim = ARGV[1], ARGV[2], ARGV[3], ARGV[4] == '1'
-- The last call of a worker is stored with its session. The last call of any other caller is stored for REMEMBERED_MS.
local REMEMBERED_MS = 15 * 60 * 1000
local memory = key('call' .. lane .. ':' .. caller)

-- Returns the seq of the caller's last settle, and its results.
local function recall()
  local session = openSession(caller)
  if session then
    local last = session.calls[lane]
    return last.callSeq or '0', last.results
  end
  return match(call('GET', memory) or '0,', '^(%d*),(.*)$')
end

-- Stores the seq and the results of this call. It must run after the claim: otherwise the claim, which has the same seq, would look
-- like a repetition.
local function remember(results)
  local session = openSession(caller)
  if not session then return call('SET', memory, callSeq .. ',' .. results, 'PX', REMEMBERED_MS) end
  local seq, last = tonumber(callSeq), session.calls[lane]
  if seq > last.seq then last.seq, last.seqText = seq, callSeq end
  keepSeq(caller, lane, 'callSeq' .. lane, callSeq, 'results' .. lane, results)
end

local results
if caller ~= '' then
  local last, remembered = recall()
  if tonumber(callSeq) < tonumber(last) then return straggler(caller, callSeq, last) end
  if callSeq == last then results = remembered end
end
local repeated = results ~= nil
if not repeated then results = settleAll() end
local request = withClaim and claimRequest(5)
local claimed = withClaim and claim(request)
if caller ~= '' and not repeated then remember(results) end
if withClaim and (request.session ~= caller or request.lane ~= lane or repeated) then
  keepSeq(request.session, request.lane)
end
if finishes > 0 and queue.active == 0 and not anyWaiting() then
  tell(1, 'E')
  -- Without delayed jobs, all jobs are finished: the bound on the size of unfinished jobs starts anew.
  if queue.delays == 0 then set('largest', 0) end
end
flushPlaces()
save()
results = results .. sentTo()
if claimed then return { results, unpack(claimed) } end
return { results }
