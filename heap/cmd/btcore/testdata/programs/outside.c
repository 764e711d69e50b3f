/* 30 blocks of 200 bytes have their address in the kernel alone, by epoll_ctl; 25 of 160 bytes are held by a word of their own
   header, one double before their start; 12 of 96 bytes are leaked. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

double *g_from_one[25];

__attribute__((noinline)) static void make(void)
{
	for (int i = 0; i < 25; i++) {
		double *p = calloc(20, sizeof *p);
		g_from_one[i] = p - 1;
	}
	int set = epoll_create1(0);
	for (int i = 0; i < 30; i++) {
		struct epoll_event e = {.events = EPOLLIN};
		memset(e.data.ptr = malloc(200), 1, 200);
		epoll_ctl(set, EPOLL_CTL_ADD, eventfd(0, 0), &e);
	}
	for (int i = 0; i < 12; i++)
		*(volatile char *)malloc(96) = 1;
}
__attribute__((noinline)) static void clear(void) { volatile char b[9000]; for (int i = 0; i < 9000; i++) b[i] = 0; }
int main(void)
{
	make();
	clear();
	abort();
}
