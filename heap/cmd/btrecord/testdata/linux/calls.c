/* Each function of the C library that allocates leaves one block. */
#include "keep.h"

#include <dirent.h>
#include <malloc.h>
#include <wchar.h>

int main(void)
{
	void *v[40], *p;
	char *s = NULL;
	size_t n = 0;
	int k = 0;

	v[k++] = malloc(1000);
	v[k++] = calloc(3, 335);
	v[k++] = realloc(NULL, 1002);
	v[k++] = realloc(malloc(10), 1003);
	v[k++] = reallocarray(NULL, 4, 251);
	v[k++] = memalign(64, 1005);
	v[k++] = aligned_alloc(64, 1006);
	if (posix_memalign(&p, 64, 1007))
		return 1;
	v[k++] = p;
	v[k++] = valloc(1008);
	v[k++] = pvalloc(4096);
	v[k++] = strdup("a string of thirty bytes length");
	v[k++] = strndup("bbbbbbbbbbb", 5);
	v[k++] = wcsdup(L"cccc");
	if (asprintf(&s, "%d-%s", 42, "hello") < 0)
		return 1;
	v[k++] = s;
	FILE *f = fopen("/etc/passwd", "r");
	char *line = NULL;
	if (!f || getline(&line, &n, f) < 0)
		return 1;
	v[k++] = line;
	fclose(f);
	FILE *m = open_memstream(&s, &n);
	fprintf(m, "stream %d", 7);
	fclose(m);
	v[k++] = s;
	v[k++] = get_current_dir_name();
	v[k++] = realpath(".", NULL);
	v[k++] = malloc(0);
	v[k] = realloc(malloc(5), 0);
	if (v[k])
		k++;
	dprintf(1, "main %d -\n", k);
	return 0;
}
