-- Lock keys. Jobs without a lock key must not pay for these functions: they were a sixth of a lone settle.
-- The functions are made on first use, because Redis makes a script's functions anew in every run.
local lanes
local function openLanes()
  if lanes then return lanes end
  lanes = {}
  $include{lane-moves lane-turns}
  return lanes
end
