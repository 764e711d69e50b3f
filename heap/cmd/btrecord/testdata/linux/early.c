/* What runs before and after main allocates. */
#include "keep.h"

#include <fcntl.h>

static void *last;

static void before_all(int argc, char **argv, char **env)
{
	(void)argc, (void)argv, (void)env;
	keep(100);
}
__attribute__((section(".preinit_array"), used)) static void (*const preinit)(int, char **, char **) = before_all;

__attribute__((constructor(101))) static void first(void)
{
	keep(200);
}

__attribute__((constructor)) static void second(void)
{
	last = keep(300);
}

__attribute__((destructor)) static void end(void)
{
	keep(400);
	free(last);
	kept--, kept_bytes -= 300;
	tell();
}

static int implementation(void)
{
	return 7;
}

static void *resolver(void)
{
	return (void *)implementation;
}

int seven(void) __attribute__((ifunc("resolver")));

static void at_exit(void)
{
	keep(600);
}

int main(void)
{
	keep(500);
	atexit(at_exit);
	return seven() - 7;
}
