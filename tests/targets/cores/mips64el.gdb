12000099c give_up
1200009ec handle_fault
signal
120000a24 innermost
120000a84 middle
12000321c code_room
