-- Families and dead letters, made on first use: see lanes.lua. Queues without them must not pay for these functions.
local family
local function openFamily()
  if family then return family end
  family = {}
  $include{outbox family-extras family-ends dead-letter}
  return family
end

-- Returns the queues that this script has sent messages to; nil if there are none.
local function receivers() return family and family.receivers[1] and family.receivers end

-- Returns them as the end of a text: each with NUL before it.
local function sentTo() return receivers() and '\0' .. concat(receivers(), '\0') or '' end
