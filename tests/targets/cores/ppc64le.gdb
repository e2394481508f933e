10000a14 give_up
10000a54 handle_fault
4000021008 ??
0 ??
