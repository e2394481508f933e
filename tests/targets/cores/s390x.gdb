1000758 give_up
1000784 handle_fault
signal
10007a4 innermost
10007e8 middle
100321c code_room
0 ??
