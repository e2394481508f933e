-- Errors out of traces.
local caught = 0
for i = 1, 1000 do
  local ok = pcall(function()
    local sum = 0
    for j = 1, 1000 do
      sum = sum + j
      if j == 900 then error("thrown") end
    end
  end)
  if not ok then caught = caught + 1 end
end
print("caught " .. caught)
