/*
 * Modules that do not see a preloaded library, or that come and go. The arguments: a mode,
 * plugin a, plugin b. It prints what the functions of the plugins keep.
 */
#include "keep.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <iconv.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

typedef void *(*plugin_fn)(size_t);

static unsigned long count[2];

static void *call(void *h, int b, size_t size)
{
	plugin_fn f = h ? (plugin_fn)dlsym(h, b ? "plugin_b" : "plugin_a") : NULL;

	if (!f) {
		fprintf(stderr, "%s\n", dlerror());
		exit(9);
	}
	count[b]++;
	return f(size);
}

static int copy(const char *from, int to)
{
	int f = open(from, O_RDONLY);
	off_t at = 0;

	while (sendfile(to, f, &at, 1 << 20) > 0)
		;
	close(f);
	return to;
}

static void *load(const char *path)
{
	return dlopen(path, RTLD_NOW);
}

static void convert(const char *to, const char *from) /* loads and unloads modules */
{
	iconv_t c = iconv_open(to, from);
	char text[8] = "abc", out[99], *in = text, *end = out;
	size_t n = 3, space = sizeof out;

	if (c != (iconv_t)-1) {
		iconv(c, &in, &n, &end, &space);
		iconv_close(c);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argv[1], *a = argv[2], *b = argv[3];

	(void)argc;
	if (!strcmp(mode, "deepbind") || !strcmp(mode, "lazy")) {
		void *h = dlopen(a, (*mode == 'd' ? RTLD_NOW : RTLD_LAZY) | RTLD_DEEPBIND), *p[10];
		for (int i = 0; i < 10; i++)
			p[i] = call(h, 0, 100);
		for (int i = 0; i < 3; i++, count[0]--)
			free(p[i]);
	} else if (!strcmp(mode, "dlmopen")) {
		void *h = dlmopen(LM_ID_NEWLM, b, RTLD_NOW);
		for (int i = 0; i < 10; i++)
			call(h, 1, 1000);
		count[1] = 0; /* another allocator's */
	} else if (!strcmp(mode, "again")) { /* b lands where a was */
		for (int r = 0; r < 6; r++) {
			void *h = load(r % 2 ? b : a);
			for (int i = 0; i < 10; i++)
				call(h, r % 2, r % 2 ? 1000 : 100);
			dlclose(h);
		}
	} else if (!strcmp(mode, "iconv")) {
		for (int r = 0; r < 4; r++) {
			convert("ISO-2022-JP", "EUC-KR");
			for (int k = 0; k < 6; k++)
				convert("UTF-16", "BIG5");
			void *h = load(r % 2 ? b : a);
			for (int i = 0; i < 10; i++)
				call(h, r % 2, r % 2 ? 1000 : 100);
			if (r < 2)
				dlclose(h);
		}
	} else if (!strcmp(mode, "memory")) { /* from a memfd, and from a file that is gone */
		char path[64];
		snprintf(path, sizeof path, "/proc/self/fd/%d", copy(a, memfd_create("plugin", 0)));
		void *h = load(path);
		for (int i = 0; i < 10; i++)
			call(h, 0, 100);
		printf("call %lu %lu\n", count[0], count[0] * 100); /* the module has no name that leads to its file */
		return 0;
	}
	printf("plugin_a %lu %lu\nplugin_b %lu %lu\n", count[0], count[0] * 100, count[1], count[1] * 1000);
	return 0;
}
