-- What every script starts from: the keys of one queue and Redis' clock.
-- KEYS[1] is the queue's hash tag. Every other key is the tag and a suffix, so that all of them lie in one slot.
local base = KEYS[1]
local call, format, match, concat, ceil, floor = redis.call, string.format, string.match, table.concat, math.ceil, math.floor

local function key(suffix) return base .. ':' .. suffix end

local clock = call('TIME')
local micros = clock[1] * 1000000 + clock[2]
-- Milliseconds, with a fraction: ends are rounded up, so that nothing ends early.
local now = micros / 1000

-- Lua's own conversion keeps 14 digits; ticks have 16. %d is faster than %.0f and needs a long of 64 bits.
local DIGITS = format('%d', 2 ^ 40) == '1099511627776' and '%d' or '%.0f'
local function digits(number) return format(DIGITS, number) end

-- Bounds that more than one part keeps: events of a queue, the length up to which the texts of claimed jobs go as one, and how long the
-- last call of one who adds is remembered.
local EVENTS_KEPT, SHORT, ADD_REMEMBERED_MS = 10000, 65536, 15 * 60 * 1000
-- In bytes, see budget.ts: a reply, a value that is copied into an event, and half of what the log of events keeps.
local REPLY_BYTES, EVENT_VALUE_BYTES, EVENTS_SEGMENT = 4194304, 4096, 4194304
-- Stands in an event for a value that is too large for it. No JSON text of ours ends in a space, and readers that do not know it
-- (older versions) see null.
local LARGE_VALUE = 'null '

-- Lua's stack holds about 8000 values: longer lists go in several commands.
local AT_ONCE = 4000
local function many(command, target, list)
  local size = #list
  if size == 0 then return end
  if size <= AT_ONCE then return call(command, target, unpack(list)) end
  for first = 1, size, AT_ONCE do call(command, target, unpack(list, first, math.min(first + AT_ONCE - 1, size))) end
end

-- The values of `fields`, false for those that are not there.
local function fetch(target, fields)
  local size = #fields
  if size == 0 then return {} end
  if size <= AT_ONCE then return call('HMGET', target, unpack(fields)) end
  local values = {}
  for first = 1, size, AT_ONCE do
    local part = call('HMGET', target, unpack(fields, first, math.min(first + AT_ONCE - 1, size)))
    for i = 1, #part do values[first + i - 1] = part[i] end
  end
  return values
end

-- A call that came after a later one of the same caller.
local function straggler(caller, seq, last)
  return { err = 'HOLDFAST Call ' .. seq .. ' of ' .. caller .. ' came after its call ' .. last .. ': number calls upwards.' }
end
