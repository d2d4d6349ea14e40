-- Metrics, made on first use: see lanes.lua.
local metrics
local function openMetrics()
  if metrics then return metrics end
  metrics = {}
  $include{minutes}
  return metrics
end
