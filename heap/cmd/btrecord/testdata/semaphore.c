/* All threads wait for a semaphore. On SIGUSR1, one allocates 100 blocks of 77 bytes, and ends. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static sem_t go, never;
static void *volatile sink;

static void on(int signal) { (void)signal; sem_post(&go); }
static void *waits(void *arg) { sem_wait(&never); return arg; }

__attribute__((noinline)) static void allocate(void)
{
	for (int i = 0; i < 100; i++)
		sink = malloc(77);
}

int main(void)
{
	pthread_t t;

	sem_init(&go, 0, 0);
	sem_init(&never, 0, 0);
	signal(SIGUSR1, on);
	pthread_create(&t, NULL, waits, NULL);
	if (write(1, "ready\n", 6) != 6)
		return 1;
	while (sem_wait(&go))
		;
	allocate();
	_exit(0);
}
