80492ff give_up
804931e handle_fault
signal
8049339 innermost
8049376 middle
804d214 code_room
3 ??
0 ??
