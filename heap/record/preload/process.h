/*
 * What slots.c, process.c, hooks.c and attach.c know of each other.
 */
#ifndef LWSBT_PROCESS_H
#define LWSBT_PROCESS_H

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload.h"

/* linux/futex.h is not there for every C library. */
#if defined(SYS_futex_time64)
#define FUTEX_CALL (sizeof(time_t) > sizeof(long) ? SYS_futex_time64 : SYS_futex)
#else
#define FUTEX_CALL SYS_futex
#endif
#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define FUTEX_PRIVATE 128

/* The child of a recorded program may have another C library, and loads this one all the same. So functions
 * that only one C library has are not called by their names. */
static inline int set_file(int f, int command, long value)
{
	return (int)syscall(SYS_fcntl, f, command, value);
}

/* file is a descriptor of the memory, which may be closed later. */
bool slots_start(int file);
uint32_t thread_id(void);
/* ring_map maps the header and the slots of the file at path. *file is a descriptor of it. */
struct ring_header *ring_map(const char *path, int *file);
/* ring_open opens the file again; -1: it cannot be reached. */
int ring_open(void);
extern char ring_path[];	/* what LWSBT_RING names: the environment may change */
extern pid_t owner;	/* the process */
/* What the process tells of its begin: see RING_IMAGE. */
struct origin {
	pid_t parent;
	uint64_t parent_image;
	uint32_t told;	/* not every machine has atomic bytes */
};
extern struct origin origin;
/* child_start begins recording in a forked child, if it is to be recorded. */
void child_start(void);
/* process_start begins recording into the file at path, and reports whether it did. attaching: the library
 * was not preloaded, and programs that the process executes are not recorded. */
bool process_start(const char *path, bool attaching);

/* on reports whether events of this mode are recorded. */
static inline bool on(uint32_t mode)
{
	struct ring_header *r = gate->ring;

	if (UNLIKELY(!r) && !begin())
		return false;
	return __atomic_load_n(&gate->ring->mode, __ATOMIC_RELAXED) & mode;
}

/* keep records an allocation, if it is sampled. */
static inline void keep(void *p, size_t n, const struct regs *from)
{
	if (passes(from->pc) || !sampled(n))
		return;
	if (UNLIKELY(fixed.sample))
		sample_add((uintptr_t)p);
	record_alloc(p, n, from);
}

/* ---------------------------------------------------------------- exec.c */

/* exec_start finds the functions that the hooks call. begin starts recording, and reports whether it has begun. */
void exec_start(bool (*begin)(void));
/* exec_keep has programs that are executed recorded, too: the memory has a name and a descriptor. */
void exec_keep(const char *memory_name, int file, const char *library_name);
/* exec_inherited returns the descriptor that a name of an inherited file means, or -1. */
int exec_inherited(const char *name);
/* exec_value returns what follows name in an environment, "" if it is not there. */
const char *exec_value(char *const envp[], const char *name);

/* ---------------------------------------------------------------- program.c */

/* program_start has the functions of a program with its own malloc recorded, if there
 * are such: see program_hooks. */
void program_start(void);
bool program_has_malloc(void);

/* ---------------------------------------------------------------- attaching */

/* The functions of hooks.c for which those of the C library are exchanged where the
 * process runs already. real is for attach.c. */
#define HOOKS 12
struct hook {
	const char *name;
	void *ours, *real;
};
extern struct hook hooks[HOOKS];
/* hooks_loaded begins recording, if that has not begun, once all libraries are loaded. */
void hooks_loaded(void);
/* hooks_attach has the hooks call the functions that find returns. */
void hooks_attach(void *(*find)(const char *));

#endif
