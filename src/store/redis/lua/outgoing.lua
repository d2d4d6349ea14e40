-- use: clock tools
-- Reads the messages to another queue, the oldest first, after it has deleted those that were applied there.
-- KEYS: tag, the hash tag of the sending queue.
-- ARGV: name of the receiving queue, number of the last message that was applied ('': none), most, the messages to return.
-- Returns the numbers and texts of messages, one after the other.
local stream, most = key('outbox:' .. ARGV[1]), tonumber(ARGV[3])
local READ_AT_ONCE, BYTES = 5, 262144
if ARGV[2] ~= '' then
  call('XTRIM', stream, 'MINID', ARGV[2] .. '-1')
  if call('XLEN', stream) == 0 then
    call('UNLINK', stream)
    call('ZREM', key('outbox'), ARGV[1])
  end
end
local found, bytes, last = {}, 0, nil
repeat
  local messages = call('XRANGE', stream, last and '(' .. last or '-', '+', 'COUNT', READ_AT_ONCE)
  for i = 1, #messages do
    if #found >= 2 * most or bytes >= BYTES then break end
    last = messages[i][1]
    local text = messages[i][2][2]
    found[#found + 1], found[#found + 2] = last:sub(1, -3), text
    bytes = bytes + #text
  end
until #messages < READ_AT_ONCE or #found >= 2 * most or bytes >= BYTES
return found
