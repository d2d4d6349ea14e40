-- use: clock tools
-- Reads the links of a parent to its children, one page.
-- KEYS: tag, the hash tag of the queue.
-- ARGV: job id, after ('': from the first link on, else = and the child that the page before ended with), limit, states (letters, see
--   family-ends.lua).
-- Returns the number of links of each state (pending, processed, failed, ignored), the child that the next page follows ('': the links have
-- ended), and for each link: child (queue LF id), state, text.
local LOOKED_AT_ONCE = 500
local links, after, limit = key('links:' .. ARGV[1]), ARGV[2], tonumber(ARGV[3])
local counts = call('HMGET', links, '#p', '#d', '#f', '#i')
for i = 1, 4 do counts[i] = tonumber(counts[i]) or 0 end
local from = after == '' and '-' or '(' .. after:sub(2)
local fields = call('ZRANGEBYLEX', key('kids:' .. ARGV[1]), from, '+', 'LIMIT', 0, LOOKED_AT_ONCE)
local texts, found, bytes, upTo = fetch(links, fields), {}, 0, ''
for i = 1, #fields do
  local state, text = match(texts[i] or '', '^(%a)[^%z]*%z(.*)$')
  if state and string.find(ARGV[4], state, 1, true) then
    if #found >= 3 * limit or (bytes + #text > REPLY_BYTES and #found > 0) then return { counts, upTo, found } end
    found[#found + 1], found[#found + 2], found[#found + 3] = fields[i], state, text
    bytes = bytes + #text
  end
  upTo = fields[i]
end
return { counts, #fields == LOOKED_AT_ONCE and upTo or '', found }
