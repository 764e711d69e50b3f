/* To be linked with a static allocator. */
#include "keep.h"

int main(void)
{
	static void *v[1000];
	void *volatile p;

	for (int i = 0; i < 1000; i++)
		v[i] = keep(100);
	for (int i = 0; i < 1000; i += 2)
		free(v[i]);
	kept = 500, kept_bytes = 50000;
	for (int i = 0; i < 10; i++)
		p = calloc(10, 20);
	p = realloc(malloc(10), 777);
	p = aligned_alloc(64, 640);
	dprintf(1, "main 512 53417\n");
	return p == NULL;
}
