1065c give_up
10688 handle_fault
3ffff000 ??
