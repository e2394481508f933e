1064c give_up
10678 handle_fault
3ffff000 ??
