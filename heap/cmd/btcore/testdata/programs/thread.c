/* A thread aborts. In a stripped musl, the last symbol before its first function, __clone, is memset, without size. */
#include <pthread.h>
#include <stdlib.h>
volatile char zero;

static void *body(void *arg)
{
	if (!zero)
		abort();
	return arg;
}

int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, body, 0);
	pthread_join(t, 0);
	return zero;
}
