<?php
// As engine_work.cpp: so many seconds of processor time, or, behind an "x", so many times.
function work($rounds) {
  $sum = 0;
  for ($i = 0; $i < $rounds; $i++) $sum += $i * 3 % 7;
  return $sum;
}
function seconds() {
  $usage = getrusage();
  return $usage["ru_utime.tv_sec"] + $usage["ru_utime.tv_usec"] / 1e6;
}
$argument = $argv[1] ?? "1";
$counts = $argument[0] == "x";
$times = $counts ? (int)substr($argument, 1) : 0;
$end = seconds() + ($counts ? 0 : (int)$argument);
while ($counts ? $times-- > 0 : seconds() < $end) work(6000000);
echo "worked\n";
