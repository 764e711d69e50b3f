/*
 * The example of X and Y: module B is loaded and allocates; it is unloaded and D
 * loaded, in its place; then B again, elsewhere. Prints for each allocation:
 * FUNCTION ITS-ADDRESS BLOCK. Arguments: B, D, and what to leave live ("keep"), or
 * how often to do it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *use(const char *path, const char *name, size_t n)
{
	void *h = dlopen(path, RTLD_NOW);

	if (!h) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	void *(*f)(size_t) = (void *(*)(size_t))dlsym(h, name);
	void *p = f(n);
	printf("%s %p %p\n", name, (void *)f, p);
	return h;
}

int main(int argc, char **argv)
{
	static char out[1 << 16];
	int times = argc > 3 ? atoi(argv[3]) : 1;

	setvbuf(stdout, out, _IOFBF, sizeof out);
	while (times--) {
		void *b = use(argv[1], "of_b", 1111);
		dlclose(b);
		void *d = use(argv[2], "of_d", 2222);
		b = use(argv[1], "of_b", 3333);
		dlclose(d);
		dlclose(b);
	}
	return 0;
}
