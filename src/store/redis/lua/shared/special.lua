-- The parts of a claim that few claims need, made on first use: see lanes.lua.
local special
local function openSpecial()
  if special then return special end
  special = {}
  $include{special-claims special-limits}
  return special
end
