-- Failures that are no outcome of a run, made on first use: see lanes.lua.
local failing
local function openFailing()
  if failing then return failing end
  failing = {}
  $include{fail}
  return failing
end
