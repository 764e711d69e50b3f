/* newlib.c: what newlib needs of an operating system, by the system calls of sys.c. */
#include <errno.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/time.h>

long sys_write(int fd, const void *p, size_t n);
void sys_exit(int code) __attribute__((noreturn));

int _write(int fd, const void *p, size_t n);
void *_sbrk(ptrdiff_t n);
void _exit(int code);
int _fstat(int fd, struct stat *s);
int _gettimeofday(struct timeval *t, void *zone);

int _write(int fd, const void *p, size_t n)
{
	return (int)sys_write(fd, p, n);
}

void _exit(int code)
{
	sys_exit(code);
}

int _fstat(int fd, struct stat *s)
{
	(void)fd;
	s->st_mode = S_IFREG;	/* buffered */
	return 0;
}

int _gettimeofday(struct timeval *t, void *zone)
{
	(void)zone;
	t->tv_sec = 1700000000;
	t->tv_usec = 0;
	return 0;
}

void *_sbrk(ptrdiff_t n)
{
	static char memory[64 << 20] __attribute__((aligned(16)));
	static size_t used;
	char *p = memory + used;

	if (n > 0 && sizeof memory - used < (size_t)n) {
		errno = ENOMEM;
		return (void *)-1;
	}
	used += (size_t)n;
	return p;
}

/* of crti.o, which is not linked */
void _init(void);
void _fini(void);

void _init(void)
{
}

void _fini(void)
{
}
