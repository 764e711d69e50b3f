/*
 * A program that does as it is told, to be attached to. Commands, each answered by "ok":
 *   keep N SIZE    allocates N blocks
 *   drop N         frees the N newest
 *   load MODULE    loads a module with a function of_module, and calls it
 *   storm N        N threads allocate and free until the end
 *   join           waits for a thread, no longer for a command
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *kept[100000];
static unsigned n;

__attribute__((noinline)) static void keep(size_t size)
{
	kept[n++] = malloc(size);
}

static void *storm(void *arg)
{
	for (;;) {
		void *volatile p = malloc(100);
		void *volatile q = realloc(p, 200);
		free(q);
	}
	return arg;
}

int main(void)
{
	char name[4096];
	unsigned a, b;
	pthread_t t;

	while (scanf("%4095s", name) == 1) {
		if (name[0] == 'k' && scanf("%u %u", &a, &b) == 2)
			while (a-- > 0)
				keep(b);
		else if (name[0] == 'd' && scanf("%u", &a) == 1)
			while (a-- > 0)
				free(kept[--n]);
		else if (name[0] == 'l' && scanf("%4095s", name) == 1) {
			void *m = dlopen(name, RTLD_NOW);
			void *(*f)(size_t) = m ? (void *(*)(size_t))dlsym(m, "of_module") : NULL;
			if (!f)
				return 2;
			kept[n++] = f(777);
		} else if (name[0] == 's' && scanf("%u", &a) == 1)
			while (a-- > 0)
				pthread_create(&t, NULL, storm, NULL);
		puts("ok");
		fflush(stdout);
		if (name[0] == 'j')
			pthread_join(t, NULL);
	}
	return 7;
}
