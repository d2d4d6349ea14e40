-- Messages to other queues, which may lie in other slots (the rule: see contract/families.ts). A script that changes a job writes what this
-- means for jobs of other queues, and the store delivers it afterwards (deliver.lua). A message to a job of the same queue goes the same way.
--   outbox           the receiving queues, by the number of a message
--   outbox:<queue>   the messages to a queue, a stream: the id of an entry is the number of its message and -0
--   inbox            by sending queue: the number of the last message that was applied here. Only if it lies in another slot
--   kin              the queues that children of waiting parents are in
-- The numbers are ticks, so they grow across a failover too. A message is a letter and texts, with NUL between; arrivals.lua lists them.
family.receivers = {}
local isReceiver = {}

-- Sends the text of a message as it is. Long texts are not joined here, because each copy of them holds the server up.
function family.sendText(to, text)
  local number = digits(ticks(1))
  if not isReceiver[to] then
    isReceiver[to] = true
    table.insert(family.receivers, to)
    call('ZADD', key('outbox'), 'NX', number, to)
  end
  call('XADD', key('outbox:' .. to), number .. '-0', 'm', text)
end

function family.send(to, ...) family.sendText(to, concat({ ... }, '\0')) end

-- Returns whether messages wait that this script has not written.
function family.isOwing() return call('ZCARD', key('outbox')) > #family.receivers end
