/*
 * The file that has the rings.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "process.h"

char ring_path[PATH_MAX];
static dev_t device;
static ino_t inode;

int ring_open(void)
{
	struct stat info;
	int f = open(ring_path, O_RDWR | O_CLOEXEC);

	if (f < 0 || (!fstat(f, &info) && info.st_dev == device && info.st_ino == inode))
		return f;
	close(f); /* it is another one by now */
	return -1;
}

/* ring_ask asks btrecord for a descriptor of the memory: in another mount namespace, /proc
 * may not have btrecord. Its socket has no place in the file system. */
static NOINLINE int ring_ask(const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	char request[] = "memory 0\n", space[CMSG_SPACE(sizeof(int))], byte;
	struct iovec part = {&byte, 1};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
	int f = -1, s, pid = (int)strtol(path + (strncmp(path, "/proc/", 6) ? strlen(path) : 6), NULL, 10);

	if (pid <= 0 || (s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0)
		return -1;
	size_t n = (size_t)snprintf(to.sun_path + 1, sizeof to.sun_path - 1, "lwsbt.%d", pid);
	if (!connect(s, (struct sockaddr *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) &&
	    send(s, request, sizeof request - 1, MSG_NOSIGNAL) == sizeof request - 1 && recvmsg(s, &m, MSG_CMSG_CLOEXEC) == 1) {
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			memcpy(&f, CMSG_DATA(c), sizeof f);
	}
	close(s);
	return f;
}

static bool fits(const struct ring_header *h, uint64_t bytes)
{
	return !memcmp(h->magic, RING_MAGIC, sizeof h->magic) && h->version == RING_VERSION && h->slots && h->slots <= 65536 &&
		h->words >= 4096 && !(h->words & (h->words - 1)) && h->slot_at >= sizeof *h &&
		h->area >= 8 * ((uint64_t)h->words + RING_SLACK) && h->area_at >= h->slot_at + (uint64_t)h->slots * RING_SLOT &&
		h->rules_at >= h->area_at + h->slots * h->area && bytes >= h->rules_at + RING_RULES;
}

struct ring_header *ring_map(const char *path, int *file)
{
	struct stat info;
	int inherited = exec_inherited(path), f = inherited < 0 ? open(path, O_RDWR | O_CLOEXEC) : set_file(inherited, F_DUPFD_CLOEXEC, 0);

	if (f < 0)
		f = ring_ask(path);
	if (f < 0)
		return NULL;
	if (strlen(path) < sizeof ring_path && pread(f, &fixed, sizeof fixed, 0) == (ssize_t)sizeof fixed && !fstat(f, &info) &&
	    fits(&fixed, (uint64_t)info.st_size)) {
		strcpy(ring_path, path);
		device = info.st_dev;
		inode = info.st_ino;
		void *p = mmap(NULL, RING_RULES, PROT_READ, MAP_SHARED, f, (off_t)fixed.rules_at);
		tables = p == MAP_FAILED ? NULL : p;
		p = mmap(NULL, fixed.slot_at + fixed.slots * RING_SLOT, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
		if (p != MAP_FAILED) {
			*file = f;
			return p;
		}
	}
	close(f);
	return NULL;
}
