/* Sorts the words of a file and counts them, as sort and uniq do. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char **words;
static size_t n, room;

static void add(const char *from, size_t length)
{
	if (n == room && !(words = reallocarray(words, room = room ? 2 * room : 16, sizeof *words)))
		abort();
	words[n++] = strndup(from, length);
}

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

int main(int argc, char **argv)
{
	FILE *f = fopen(argv[argc - 1], "r");
	char *line = NULL;
	size_t size = 0, different = 0;
	ssize_t length;

	if (!f)
		return 1;
	for (int lines = 0; lines < 3000 && (length = getline(&line, &size, f)) > 0; lines++)
		for (ssize_t i = 0, k; i < length; i = k + 1) {
			for (k = i; k < length && isalnum((unsigned char)line[k]); k++)
				;
			if (k > i)
				add(line + i, (size_t)(k - i));
		}
	fclose(f);
	qsort(words, n, sizeof *words, compare);
	for (size_t i = 0; i < n; i++) {
		different += !i || strcmp(words[i], words[i - 1]);
		if (i % 3)
			free(words[i]);
	}
	printf("%zu words, %zu different\n", n, different);
	return 0;
}
