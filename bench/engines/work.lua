local function work(rounds)
  local sum = 0
  for i = 1, rounds do sum = sum + i * 3 % 7 end
  return sum
end
local sum
for i = 1, 1000 do sum = work(300000) end
print(sum)
