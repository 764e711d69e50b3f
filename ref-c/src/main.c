/* btref: the command line. Each mode is in a separate file. */
#include "btref.h"

#include <string.h>

int lib_logged_ref_err;

/* Discards the library's log, but notes that it reported a bad base. */
static void
log_emit(int level, const char *line)
{
	(void)level;
	if (strstr(line, "ref err"))
		lib_logged_ref_err = 1;
}

static void
usage(FILE *f)
{
	fputs("usage: btref vectors [--source TEXT] [--spill any]   stacks on stdin, .btv on stdout\n"
	      "       btref capture [--source TEXT]                 live call stacks, .btv on stdout\n"
	      "       btref serve                                   a BTP/1 testee\n"
	      "       btref bench [--seconds S]                     stacks on stdin, ns a stack\n"
	      "       btref errata [--tool PATH] [N | list]         faults of the library, shown\n"
	      "\n"
	      "A line of stacks is ID<TAB>size<TAB>addresses, in hex, with blanks between.\n"
	      "For example: printf 't\\t1d60\\t406651 406852\\n' | btref vectors\n", f);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} modes[] = {
		{ "vectors", mode_vectors }, { "capture", mode_capture },
		{ "serve", mode_serve }, { "bench", mode_bench }, { "errata", mode_errata },
	};
	size_t n;

	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		usage(stdout);
		return EXIT_OK;
	}
	lws_set_log_level(LLL_ERR, log_emit);
	if (argc > 1)
		for (n = 0; n < sizeof(modes) / sizeof(modes[0]); n++)
			if (!strcmp(argv[1], modes[n].name)) {
				int rc = modes[n].run(argc - 2, argv + 2);

				if (fflush(stdout) || ferror(stdout)) {
					perror("btref: standard output");
					return EXIT_SELF;
				}
				return rc;
			}
	if (argc > 1)
		fprintf(stderr, "btref: there is no mode %s\n", argv[1]);
	usage(stderr);
	return EXIT_USAGE;
}
