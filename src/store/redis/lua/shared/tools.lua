-- Functions that all parts share, except the fast paths.
local function key(suffix) return base .. ':' .. suffix end

local function digits(number) return format(DIGITS, number) end

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
