12000096c give_up
1200009bc handle_fault
signal
1200009f4 innermost
120000a54 middle
12000321c code_room
