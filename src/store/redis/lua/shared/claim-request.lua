-- The request of a claim, and the seq of the last call of a session.

-- Stores the seq of the last call in this lane of the session, with further fields if any are given.
local function keepSeq(id, lane, ...)
  local session = openSession(id)
  local last = session and session.calls[lane]
  if last and (last.changed or ...) then call('HSET', key('s:' .. id), 'seq' .. lane, last.seqText, ...) end
end

-- Reads a claim request of six arguments: session, seq, lane, count, by, extras.
--   extras   timedMs,max,durationMs,named: each may be empty; '' for none of them
--   named    the number of job ids, which are the last arguments of the call
local function claimRequest(at)
  local request = {
    session = ARGV[at], seq = ARGV[at + 1], lane = ARGV[at + 2], count = tonumber(ARGV[at + 3]), by = ARGV[at + 4],
  }
  if ARGV[at + 5] == '' then return request end
  local timedMs, max, durationMs, named = match(ARGV[at + 5], '^([^,]*),([^,]*),([^,]*),(%d*)$')
  request.timedMs, request.max, request.durationMs = tonumber(timedMs), tonumber(max), tonumber(durationMs)
  if named ~= '' then
    request.jobIds = {}
    for i = 1, tonumber(named) do request.jobIds[i] = ARGV[#ARGV - named + i] end
  end
  return request
end
