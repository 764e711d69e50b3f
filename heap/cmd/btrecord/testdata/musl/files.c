/* Lists a directory, as ls and find do: with the C library's own lists, patterns and buffers. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fnmatch.h>
#include <glob.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	const char *dir = argc > 1 ? argv[1] : "/";
	struct dirent **names;
	char *pattern, *path = realpath(dir, NULL), *all = NULL;
	size_t size = 0;
	glob_t found;
	regex_t expression;
	int n = scandir(dir, &names, NULL, alphasort), matches = 0;

	if (n < 0 || !path || asprintf(&pattern, "%s/s*", path) < 0 || regcomp(&expression, "^[a-m].*\\.h$", REG_EXTENDED))
		return 1;
	FILE *stream = open_memstream(&all, &size);
	for (int i = 0; i < n; i++) {
		fprintf(stream, "%s\n", names[i]->d_name);
		matches += !regexec(&expression, names[i]->d_name, 0, NULL, 0);
		free(names[i]);
	}
	free(names);
	fclose(stream);
	if (glob(pattern, 0, NULL, &found))
		found.gl_pathc = 0;
	else
		globfree(&found);
	regfree(&expression);
	printf("%zu bytes, %d matches, %zu found\n", size, matches, found.gl_pathc);
	return 0;
}
