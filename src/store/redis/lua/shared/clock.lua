-- The first part of every script: the keys of one queue, Redis' clock, shared limits and helpers.
-- KEYS[1] is the queue's hash tag. Every other key is the tag and a suffix, so that all keys of a queue lie in one slot.
local base = KEYS[1]
local call, format, match, concat, ceil, floor = redis.call, string.format, string.match, table.concat, math.ceil, math.floor

local function key(suffix) return base .. ':' .. suffix end

local clock = call('TIME')
local micros = clock[1] * 1000000 + clock[2]
-- Now in ms, with a fraction. Scripts round expiries up, so that nothing ends early.
local now = micros / 1000

-- Converts a number to digits. Lua's own conversion keeps 14 digits, but ticks have 16. %d is faster than %.0f and needs a 64-bit long.
local DIGITS = format('%d', 2 ^ 40) == '1099511627776' and '%d' or '%.0f'
local function digits(number) return format(DIGITS, number) end

-- Limits that several parts share: the events that a queue keeps; the length in bytes up to which the texts of claimed jobs are joined;
-- and how long the last add of a caller is remembered.
local EVENTS_KEPT, SHORT, ADD_REMEMBERED_MS = 10000, 65536, 15 * 60 * 1000
-- Limits in bytes (see budget.ts): a reply, a value that is copied into an event, and half of the event log.
local REPLY_BYTES, EVENT_VALUE_BYTES, EVENTS_SEGMENT = 4194304, 4096, 4194304
-- Replaces a value in an event if the value is too large. It cannot be confused with a value, because no JSON text of Holdfast ends in
-- a space. Readers of older versions, which do not know it, see null.
local LARGE_VALUE = 'null '

-- Runs a command with a list of arguments. Lua's stack holds about 8000 values, so long lists are split into several commands.
local AT_ONCE = 4000
local function many(command, target, list)
  local size = #list
  if size == 0 then return end
  if size <= AT_ONCE then return call(command, target, unpack(list)) end
  for first = 1, size, AT_ONCE do call(command, target, unpack(list, first, math.min(first + AT_ONCE - 1, size))) end
end

-- Returns the values of `fields` of a hash, false for fields that do not exist.
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

-- Returns the error for a call that arrives after a later call of the same caller.
local function straggler(caller, seq, last)
  return { err = 'HOLDFAST Call ' .. seq .. ' of ' .. caller .. ' came after its call ' .. last .. ': number calls upwards.' }
end
