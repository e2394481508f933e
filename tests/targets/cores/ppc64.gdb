10000a3c give_up
10000a7c handle_fault
4000021008 ??
0 ??
