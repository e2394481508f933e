400674 give_up
4006a8 handle_fault
