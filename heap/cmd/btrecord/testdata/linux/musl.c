/*
 * Blocks that functions of musl's C library allocate, which has no unwind tables: each caller of them
 * is in the call path. Frees of all that is not counted.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fnmatch.h>
#include <glob.h>
#include <locale.h>
#include <malloc.h>
#include <pthread.h>
#include <regex.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

void *volatile sink;
#define OUT __attribute__((noinline, noclone))

OUT void through_strdup(void) { for (int i = 0; i < 100; i++) sink = strdup("one"); }
OUT void through_strndup(void) { for (int i = 0; i < 20; i++) sink = strndup("twenty", 3); }
OUT void through_wcsdup(void) { for (int i = 0; i < 10; i++) sink = wcsdup(L"ten"); }
OUT void through_asprintf(void) { for (int i = 0; i < 50; i++) { char *s; if (asprintf(&s, "%05d", i) < 0) abort(); sink = s; } }
OUT void through_calloc(void) { for (int i = 0; i < 30; i++) sink = calloc(7, 11); }
OUT void through_memalign(void) { for (int i = 0; i < 30; i++) sink = memalign(256, 300); }
OUT void through_valloc(void) { for (int i = 0; i < 4; i++) sink = valloc(101); }
OUT void through_posix(void) { for (int i = 0; i < 5; i++) { void *p; if (posix_memalign(&p, 4096, 5000)) abort(); sink = p; } }
OUT void through_realloc(void) { void *p = NULL; for (int i = 1; i < 50; i++) p = realloc(p, (size_t)i * 100); sink = p; }
OUT void through_getline(void)
{
	for (int i = 0; i < 3; i++) {
		FILE *f = fmemopen((void *)(size_t)"abc\n", 4, "r");
		char *line = NULL;
		size_t n = 0;
		if (!f || getline(&line, &n, f) < 0)
			abort();
		fclose(f);
		sink = line;
	}
}
OUT void through_tsearch(void)
{
	static void *tree;
	static int keys[64];
	for (int i = 0; i < 64; i++) {
		keys[i] = i;
		tsearch(&keys[i], &tree, (int (*)(const void *, const void *))strcmp);
	}
}
static int compare(const void *a, const void *b) { sink = malloc(40); return *(const int *)a - *(const int *)b; }
OUT void through_qsort(void) { int v[2] = {2, 1}; qsort(v, 2, sizeof *v, compare); }
static void *runs(void *arg) { through_strdup(); return arg; }
OUT void through_thread(void) { pthread_t t; if (pthread_create(&t, NULL, runs, NULL) || pthread_join(t, NULL)) abort(); }

int main(void)
{
	through_strdup();
	through_strndup();
	through_wcsdup();
	through_asprintf();
	through_calloc();
	through_memalign();
	through_valloc();
	through_posix();
	through_realloc();
	through_getline();
	through_qsort();
	through_thread();
	printf("through_strdup 200 800\nthrough_strndup 20 80\nthrough_wcsdup 10 160\nthrough_asprintf 50 300\nthrough_calloc 30 2310\n"
		"through_memalign 30 9000\nthrough_valloc 4 404\nthrough_posix 5 25000\nthrough_realloc 1 4900\nthrough_getline 3 -\n"
		"through_qsort 1 40\nruns 100 400\n");
	return 0;
}
