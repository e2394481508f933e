/* The program that start files need. */
int main(void) { return 0; }
