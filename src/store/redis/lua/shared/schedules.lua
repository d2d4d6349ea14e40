-- Schedules, made on first use: see lanes.lua.
local schedules
local function openSchedules()
  if schedules then return schedules end
  schedules = {}
  $include{schedule-records schedule-debts}
  return schedules
end
