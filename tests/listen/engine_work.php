<?php
function work($rounds) {
  $sum = 0;
  for ($i = 0; $i < $rounds; $i++) $sum += $i * 3 % 7;
  return $sum;
}
function seconds() {
  $usage = getrusage();
  return $usage["ru_utime.tv_sec"] + $usage["ru_utime.tv_usec"] / 1e6;
}
$begin = seconds();
while (seconds() - $begin < 1) work(300000);
echo "worked\n";
