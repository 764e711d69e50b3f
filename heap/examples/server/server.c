/*
 * A program that leaks, for heap/docs/btrecord.md: it answers requests, and forgets to
 * close the session of every fourth. Nothing in it is about its heap.
 *
 *     cc -g -O2 -o server server.c && ./server 2000
 *
 * answers 2,000 requests. After a second argument of 600 it runs btrecord every 600
 * requests, as an operator would do from time to time, to have its heap dumped.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct session {
	char user[32];
	char *reply;
};

__attribute__((noinline)) static struct session *open_session(int n)
{
	struct session *s = calloc(1, sizeof *s);
	if (!s)
		abort();
	snprintf(s->user, sizeof s->user, "user%d", n % 100);
	return s;
}

static void close_session(struct session *s)
{
	free(s->reply);
	free(s);
}

__attribute__((noinline)) static char *render(const struct session *s)
{
	char *text = malloc(512);
	if (!text)
		abort();
	snprintf(text, 512, "hello, %s", s->user);
	return text;
}

__attribute__((noinline)) static size_t handle_request(int n)
{
	struct session *s = open_session(n);
	s->reply = render(s);
	size_t sent = strlen(s->reply);
	if (n % 4 == 0)
		return sent; /* the leak */
	close_session(s);
	return sent;
}

static void request_dump(void)
{
	char command[64];

	snprintf(command, sizeof command, "btrecord ctl %d dump", (int)getpid());
	if (system(command) != 0)
		fprintf(stderr, "no dump\n");
}

int main(int argc, char **argv)
{
	const struct timespec pause = { 0, 100000 };
	int requests = argc > 1 ? atoi(argv[1]) : 2000;
	int every = argc > 2 ? atoi(argv[2]) : 0;
	size_t sent = 0;

	for (int n = 0; n < requests; n++) {
		if (every > 0 && n > 0 && n % every == 0)
			request_dump();
		sent += handle_request(n);
		nanosleep(&pause, NULL);
	}
	printf("%zu bytes sent\n", sent);
	return 0;
}
