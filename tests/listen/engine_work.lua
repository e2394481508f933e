-- As engine_work.cpp: so many seconds of processor time, or, behind an "x", so many times.
local function work(rounds)
  local sum = 0
  for i = 1, rounds do sum = sum + i * 3 % 7 end
  return sum
end
local argument = arg[1] or "1"
local times = tonumber(argument:match("^x(%d+)$"))
local finish = os.clock() + (times and 0 or tonumber(argument))
local function goes_on()
  if not times then return os.clock() < finish end
  times = times - 1
  return times >= 0
end
while goes_on() do work(30000000) end
io.write("worked\n")
io.flush()  -- before what is said at exit
