/* Start files, and what they need. */
int main(void) { return 0; }
