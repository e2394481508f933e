; The work of LLVM's engines: a loop a hundred calls deep, whose time does not depend on memory.
define i64 @spin(i64 %rounds) noinline {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %state = phi i64 [ 1, %entry ], [ %after, %loop ]
  %product = mul i64 %state, 6364136223846793005
  %after = add i64 %product, 1442695040888963407
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, %rounds
  br i1 %done, label %end, label %loop
end:
  ret i64 %after
}

define i64 @below(i64 %depth, i64 %rounds) noinline {
entry:
  %bottom = icmp eq i64 %depth, 0
  br i1 %bottom, label %work, label %call
work:
  %spun = call i64 @spin(i64 %rounds)
  ret i64 %spun
call:
  %less = sub i64 %depth, 1
  %inner = call i64 @below(i64 %less, i64 %rounds)
  %more = add i64 %inner, 1
  ret i64 %more
}

define i32 @main() {
entry:
  %result = call i64 @below(i64 100, i64 300000000)
  %bits = and i64 %result, 63
  %status = trunc i64 %bits to i32
  ret i32 %status
}
