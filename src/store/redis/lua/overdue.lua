-- use: clock tools
-- Finds pending links of parents that have waited for long, some of them per call, in turn. The second net asks the queues of these children
-- how they are (remind.lua): the failover of one slot may have lost a message or its effect.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: parents to look at, links to look at, ms that a parent has waited at least.
-- Returns for each link: parent, child (queue LF id), bond. A link is left out while messages to the queue of its child wait.
local most, left, latest = tonumber(ARGV[1]), tonumber(ARGV[2]), digits(micros - ARGV[3] * 1000)
local from = call('GET', key('checked'))
local waiting = call('ZRANGEBYSCORE', key('waiting-children'), from and '(' .. from or '-inf', latest, 'WITHSCORES', 'LIMIT', 0, most)
if #waiting < 2 * most then call('UNLINK', key('checked')) else call('SET', key('checked'), waiting[#waiting]) end

local found, busy = {}, {}
local function isBusy(name)
  if busy[name] == nil then busy[name] = call('EXISTS', key('outbox:' .. name)) == 1 end
  return busy[name]
end

for i = 1, #waiting, 2 do
  local id = waiting[i]
  local kids = key('kids:' .. id)
  local count = call('ZCARD', kids)
  local share = math.min(count, math.max(1, floor(left / (#waiting - i + 1) * 2)))
  -- Each call looks at another part of many children.
  local first = count > share and micros % count or 0
  local fields = call('ZRANGE', kids, first, first + share - 1)
  local texts = fetch(key('links:' .. id), fields)
  left = left - #fields
  for j = 1, #fields do
    local bond = match(texts[j] or '', '^p,([^,]*),')
    if bond and not isBusy(match(fields[j], '^(.-)\n')) then
      found[#found + 1], found[#found + 2], found[#found + 3] = id, fields[j], bond
    end
  end
end
return found
