-- Marks, extras, steps and cancels of jobs, made on first use: see lanes.lua. Plain jobs must not pay for these functions.
local marking
local function openMarking()
  if marking then return marking end
  marking = {}
  $include{extra-fields job-steps job-cancels}
  return marking
end
