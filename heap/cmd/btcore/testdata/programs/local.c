/* Thread-local variables, for places.c. */
__thread void *local[100];
void **mine(void) { return local + 40; }
