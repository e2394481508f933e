<?php
function work($rounds) {
  $sum = 0;
  for ($i = 0; $i < $rounds; $i++) $sum += $i * 3 % 7;
  return $sum;
}
for ($i = 0; $i < 1000; $i++) $sum = work(200000);
echo $sum, "\n";
