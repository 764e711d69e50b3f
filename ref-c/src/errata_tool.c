/* Errata of the library's decoder tool, lws-api-test-backtrace, which --tool names. */
#include "errata.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static const char line[] = "~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV";

struct call {
	const char *arg[3];	/* after the program's name */
	long delay_ms;		/* before the line is written */
};

/* Runs the tool with the line on its standard input. */
static int
tool_fn(void *arg, int fd)
{
	const struct call *c = arg;
	const char *argv[5] = { errata_tool_path };
	int in[2], n;
	pid_t pid;

	for (n = 0; n < 3 && c->arg[n]; n++)
		argv[1 + n] = c->arg[n];
	if (pipe(in))
		return EXIT_SELF;
	if (!c->delay_ms)	/* write before the tool starts: the pipe buffers it */
		write_all(in[1], line, sizeof(line) - 1);
	pid = fork();
	if (pid < 0)
		return EXIT_SELF;
	if (!pid) {
		struct timespec t = { 0, c->delay_ms * 1000000 };
		ssize_t w = 0;

		close(in[0]);
		if (c->delay_ms) {
			nanosleep(&t, NULL);
			w = write(in[1], line, sizeof(line) - 1);
		}
		_exit(w < 0);
	}
	close(in[1]);
	n = open("/dev/null", O_WRONLY);
	if (n < 0 || dup2(in[0], 0) < 0 || dup2(fd, 1) < 0 || dup2(n, 2) < 0)
		return EXIT_SELF;
	execv(errata_tool_path, (char **)(uintptr_t)argv);
	return 127;
}

static bool
have_tool(void)
{
	if (!errata_tool_path)
		not_here("it needs the library's decoder tool: --tool PATH");
	else if (access(errata_tool_path, X_OK))
		not_here("%s is not a program that can be run", errata_tool_path);
	else
		return true;
	return false;
}

static bool
decoded(const struct outcome *o)
{
	size_t n;

	for (n = 0; n + 3 <= o->len; n++)
		if (!memcmp(o->data + n, "~b#", 3))
			return true;
	return false;
}

static int
no_arguments(void)
{
	struct call bare = { { NULL }, 0 }, with = { { "-d", "0" }, 0 };
	static struct outcome o, ref;

	if (!have_tool())
		return 0;
	child_run(&o, tool_fn, &bare, 10);
	child_run(&ref, tool_fn, &with, 10);
	did("the decoder tool got %s on its standard input, without arguments, as the README and "
	    "contrib/heapmap.sh call it.", line);
	expected("a ~b# line.");
	saw("%s, %u bytes on standard output%s; with the arguments -d 0: %s.",
	    decoded(&o) ? "a ~b# line" : "none", (unsigned int)o.len,
	    decoded(&o) ? "" : " (it writes its help to standard error)",
	    decoded(&ref) ? "a ~b# line" : "none");
	return !decoded(&o);
}

static int
word_32(void)
{
	static const char check[] = "its check of lws_sigbits() starts from a constant of 64 bits, "
		"of which a word of 32 keeps 0";
	struct call with = { { "-d", "0" }, 0 };
	static struct outcome o;
	uint8_t ident[5] = { 0 };
	int fd;

	if (WORD == 32) {
		unsigned int bits = lws_sigbits((uintptr_t)0x8000000000000000ull);

		did("the check that the decoder tool starts with was made: lws_sigbits() of "
		    "0x8000000000000000 in a word, which is to be 64.");
		expected("the check holds on the machines that the library is for.");
		saw("it gives %u, so that a tool built for 32 bits decodes nothing: %s.", bits, check);
		return bits != 64;
	}
	if (!have_tool())
		return 0;
	fd = open(errata_tool_path, O_RDONLY);
	if (fd < 0 || read(fd, ident, sizeof(ident)) != (ssize_t)sizeof(ident) ||
	    memcmp(ident, "\177ELF", 4) || ident[4] != 1) {
		if (fd >= 0)
			close(fd);
		return not_here("words have 64 bits; it needs a tool built for 32");
	}
	close(fd);
	child_run(&o, tool_fn, &with, 10);
	did("a decoder tool of 32 bits got %s.", line);
	expected("a ~b# line.");
	saw("%s, exit code %d: %s.", decoded(&o) ? "a ~b# line" : "none", o.code, check);
	return !decoded(&o);
}

static int
late_input(void)
{
	struct call late = { { "-d", "0" }, 300 };
	static struct outcome o;

	if (!have_tool())
		return 0;
	child_run(&o, tool_fn, &late, 10);
	did("the decoder tool got a line on a pipe, 0.3 s after it had been started.");
	expected("a ~b# line: it reads until the end of its input.");
	saw("%s, exit code %d: it waits for its input 1 ms, then gives up.",
	    decoded(&o) ? "a ~b# line" : "none", o.code);
	return !decoded(&o);
}

static int
no_file(void)
{
	struct call c = { { "--stdin", "/nonexistent/file" }, 0 };
	static struct outcome o;
	int tries = 0;
	char words[64];

	if (!have_tool())
		return 0;
	do	/* with random addresses, the unset pointer is random too */
		child_run(&o, tool_fn, &c, 10);
	while (++tries < 20 && o.how == CHILD_DONE);
	did("the decoder tool was called with --stdin and a file that does not exist, %d times.",
	    tries);
	expected("a message and an exit code.");
	saw("%s: it destroys a context that it has not made yet, through a pointer never set.",
	    outcome_text(&o, words, sizeof(words)));
	if (o.how == CHILD_DONE)
		return not_here("what the unset pointer holds did no harm in this build");
	return 1;
}

const struct erratum errata_tool[] = {
	{ 8, "the decoder tool prints its help where heapmap.sh and the README use it",
	  no_arguments },
	{ 23, "the decoder tool decodes nothing where words have 32 bits", word_32 },
	{ 24, "the decoder tool gives up when its input is not there within 1 ms", late_input },
	{ 25, "the decoder tool destroys a context it never made", no_file },
	{ 0, NULL, NULL }
};
