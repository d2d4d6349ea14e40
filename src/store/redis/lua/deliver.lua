-- use: clock run-texts counters plain-deliver plain-release plain-save tools queue jobs groups lanes keys places enter marks marking families entries schedules locks leave arrivals family-steps
-- Applies messages of another queue, or of the same one, in order. If the outbox lies in the same slot, the script takes them from there.
-- KEYS: tag, the hash tag of the receiving queue.
-- ARGV: name of the receiving queue, name of the sending queue, tag of the sending queue if it lies in the same slot ('' otherwise), most
--   (a measure of the work), then, only without the tag, for each message its number and its text.
-- Returns how many messages were taken, 1 if the outbox has more (else 0), and the queues that got messages from this script.
local own, sender, from, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local READ_AT_ONCE = 20
family.name = own
local taken, work, more = plainTaken, plainTaken, 0

local function apply(number, body)
  work = work + (arrivals[body:sub(1, 1)](sender, number, body:sub(3)) or 1)
  taken = taken + 1
end

-- Takes messages from the outbox. One step applies and deletes them, so each is applied once.
local function takeOut()
  local stream, last = from .. ':outbox:' .. own, nil
  -- Messages that add jobs are large: after one of them, the next message is read alone.
  local wanted, before, size = 1, 0, 0
  repeat
    local messages = call('XRANGE', stream, last and '(' .. last or '-', '+', 'COUNT', wanted)
    size, before = #messages, work
    for i = 1, size do
      if work >= most then break end
      last = messages[i][1]
      apply(last:sub(1, -3), messages[i][2][2])
    end
    local isDone = size < wanted or work >= most
    wanted = work - before > size and 1 or READ_AT_ONCE
  until isDone
  if last then call('XTRIM', stream, 'MINID', last:sub(1, -2) .. '1') end
  if call('XLEN', stream) > 0 then
    more = 1
  else
    call('UNLINK', stream)
    call('ZREM', from .. ':outbox', own)
  end
end

-- Applies the messages that are given. Relayers begin with the oldest message, so a number up to the last one was applied before.
local function takeGiven()
  local last = tonumber(call('HGET', key('inbox'), sender) or 0)
  local applied = last
  for at = 5, #ARGV, 2 do
    if work >= most then break end
    local number = tonumber(ARGV[at])
    if number > last then
      applied = number
      apply(ARGV[at], ARGV[at + 1])
    else
      taken = taken + 1
    end
  end
  if applied > last then call('HSET', key('inbox'), sender, digits(applied)) end
end

if from ~= '' then takeOut() else takeGiven() end
writeCounts()
flushPlaces()
if queue.layout > 5 and call('EXISTS', key('waiting-children')) == 0 then call('UNLINK', key('kin')) end
save()
return { taken, more, receivers() }
