/*
 * Recording a process that runs already: btrecord --pid has gdb load the library, which
 * changes nothing, and call lwsbt_attach. And recording modules that do not see the preloaded
 * library, as RTLD_DEEPBIND has it.
 *
 * A module calls malloc through a slot of its own memory, where the dynamic linker put
 * the address of the function. Attaching puts the hooks into the slots of all modules
 * but this one; detaching puts the functions back. The library is never unloaded: a
 * thread may be in it.
 *
 * Modules that are loaded later are found at the next dlopen, dlsym or dlclose of the
 * program. There, and not in the hooks of the allocator, the dynamic linker's lock may be
 * taken.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process.h"

/* ---------------------------------------------------------------- slots of modules */

static void *attached_dlopen(const char *name, int flags);
static void *attached_dlsym(void *handle, const char *name);

static void *attached_dlmopen(long space, const char *name, int flags);

#define LOADING 3
static struct hook loading[LOADING] = {
	{"dlopen", (void *)attached_dlopen, NULL},
	{"dlsym", (void *)attached_dlsym, NULL},
	{"dlmopen", (void *)attached_dlmopen, NULL},
};

static struct hook *hook_of(const char *name)
{
	for (unsigned i = 0; i < HOOKS; i++)
		if (!strcmp(hooks[i].name, name))
			return &hooks[i];
	for (unsigned i = 0; i < LOADING; i++)
		if (!strcmp(loading[i].name, name))
			return &loading[i];
	return NULL;
}

/* A module, as its program headers and its dynamic section describe it. */
struct object {
	const struct dl_phdr_info *info;
	uintptr_t relro, relro_end;	/* pages that were made read-only */
	const ElfW(Sym) *symbols;
	const char *strings;
};

static bool inside(const struct dl_phdr_info *info, uintptr_t at, ElfW(Word) flags)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type == PT_LOAD && (p->p_flags & flags) == flags && at - (info->dlpi_addr + p->p_vaddr) < p->p_memsz)
			return true;
	}
	return false;
}

static bool set_slot(const struct object *o, void **slot, void *to)
{
	uintptr_t at = (uintptr_t)slot, page = (uintptr_t)sysconf(_SC_PAGESIZE), start = at & ~(page - 1);
	bool fixed = at - o->relro < o->relro_end - o->relro;

	if (fixed && mprotect((void *)start, page, PROT_READ | PROT_WRITE))
		return false;
	__atomic_store_n(slot, to, __ATOMIC_RELEASE);
	if (fixed)
		mprotect((void *)start, page, PROT_READ);
	return true;
}

/* exchange puts the hook into a slot, or the function of the C library back, and
 * reports whether it did. A slot of the table for calls may not have been used so far: it
 * leads into its own module then. */
static bool exchange(const struct object *o, void **slot, const ElfW(Sym) *symbol, bool call, bool attach)
{
	const struct hook *h = hook_of(o->strings + symbol->st_name);

	if (!h || !h->real || (uintptr_t)slot % WORD || !inside(o->info, (uintptr_t)slot, PF_W))
		return false;
	if (program_hooks && h >= hooks && h < hooks + HOOKS)
		return false; /* libraries call the program's */
	void *now = __atomic_load_n(slot, __ATOMIC_RELAXED);
	if (!attach)
		return now == h->ours && set_slot(o, slot, h->real);
	if (now == h->real || (call && symbol->st_shndx == SHN_UNDEF && inside(o->info, (uintptr_t)now, 0)))
		return set_slot(o, slot, h->ours);
	return false;
}

static unsigned exchange_table(const struct object *o, uintptr_t table, size_t bytes, size_t entry, bool call, bool attach)
{
	unsigned n = 0;

	for (size_t at = 0; table && entry && at + entry <= bytes; at += entry) {
		const ElfW(Rel) *r = (const ElfW(Rel) *)(table + at);
#if UINTPTR_MAX > 0xffffffff
		size_t symbol = ELF64_R_SYM(r->r_info);
#else
		size_t symbol = ELF32_R_SYM(r->r_info);
#endif
		if (symbol)
			n += exchange(o, (void **)(o->info->dlpi_addr + r->r_offset), o->symbols + symbol, call, attach);
	}
	return n;
}

struct exchanging {
	bool attach;
	unsigned slots;
	unsigned long long loads;
};

/* The number of modules that were loaded so far, as it was when all slots were exchanged. */
static unsigned long long loads;

static int of_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct exchanging *x = arg;
	struct object o = {.info = info};
	uintptr_t dynamic = 0, calls = 0, others = 0, page = (uintptr_t)sysconf(_SC_PAGESIZE);
	size_t call_bytes = 0, other_bytes = 0, entry = 0, call_entry = 0;

	if (size >= offsetof(struct dl_phdr_info, dlpi_adds) + sizeof info->dlpi_adds) {
		x->loads = info->dlpi_adds;
		if (x->attach && x->loads == loads)
			return 1;
	}
	if (inside(info, (uintptr_t)of_module, 0))
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type == PT_DYNAMIC)
			dynamic = info->dlpi_addr + p->p_vaddr;
		if (p->p_type == PT_GNU_RELRO) {
			o.relro = (info->dlpi_addr + p->p_vaddr) & ~(page - 1);
			o.relro_end = (info->dlpi_addr + p->p_vaddr + p->p_memsz) & ~(page - 1);
		}
	}
	if (!dynamic)
		return 0;
	for (const ElfW(Dyn) *d = (const ElfW(Dyn) *)dynamic; d->d_tag != DT_NULL; d++) {
		/* The dynamic linker has added the load base, but not everywhere. */
		uintptr_t p = d->d_un.d_ptr + (d->d_un.d_ptr < info->dlpi_addr ? info->dlpi_addr : 0);
		switch (d->d_tag) {
		case DT_SYMTAB: o.symbols = (const ElfW(Sym) *)p; break;
		case DT_STRTAB: o.strings = (const char *)p; break;
		case DT_JMPREL: calls = p; break;
		case DT_PLTRELSZ: call_bytes = d->d_un.d_val; break;
		case DT_PLTREL: call_entry = d->d_un.d_val == DT_RELA ? sizeof(ElfW(Rela)) : sizeof(ElfW(Rel)); break;
		case DT_RELA: case DT_REL: others = p; break;
		case DT_RELASZ: case DT_RELSZ: other_bytes = d->d_un.d_val; break;
		case DT_RELAENT: case DT_RELENT: entry = d->d_un.d_val; break;
		}
	}
	if (o.symbols && o.strings) {
		x->slots += exchange_table(&o, calls, call_bytes, call_entry, true, x->attach);
		x->slots += exchange_table(&o, others, other_bytes, entry, false, x->attach);
	}
	return 0;
}

static unsigned exchange_all(bool attach)
{
	struct exchanging x = {.attach = attach};

	dl_iterate_phdr(of_module, &x);
	loads = x.loads;
	return x.slots;
}

/* ---------------------------------------------------------------- later modules */

static bool attached;

static void *attached_dlopen(const char *name, int flags)
{
	if (__atomic_load_n(&attached, __ATOMIC_RELAXED))
		exchange_all(true);
	/* What it loads depends on its caller: this must be a jump. */
	return ((void *(*)(const char *, int))loading[0].real)(name, flags);
}

static void *attached_dlsym(void *handle, const char *name)
{
	if (__atomic_load_n(&attached, __ATOMIC_RELAXED))
		exchange_all(true);
	return ((void *(*)(void *, const char *))loading[1].real)(handle, name);
}

/* The modules of another namespace have a C library of their own. */
static void *attached_dlmopen(long space, const char *name, int flags)
{
	if (__atomic_load_n(&attached, __ATOMIC_RELAXED)) {
		exchange_all(true);
		if (space && gate->ring) /* LM_ID_BASE is 0 */
			record_elsewhere();
	}
	return ((void *(*)(long, const char *, int))loading[2].real)(space, name, flags);
}

/* ---------------------------------------------------------------- preloaded */

/* next does not look for what is hardly there: a dlsym that finds nothing allocates its message. */
static void *next(const char *name)
{
#ifndef __GLIBC__
	if (!strcmp(name, "pvalloc") || !strcmp(name, "dlmopen"))
		return NULL;
#endif
	return strcmp(name, "cfree") ? dlsym(RTLD_NEXT, name) : NULL;
}

static void start(void *(*find)(const char *))
{
	for (unsigned i = 0; i < HOOKS; i++)
		hooks[i].real = find(hooks[i].name);
	for (unsigned i = 0; i < LOADING; i++)
		loading[i].real = find(loading[i].name);
}

static __attribute__((constructor)) void loaded(void)
{
	hooks_loaded();
	if (!gate->ring)
		return;
	/* for modules that would bypass a preloaded library */
	start(next);
	attached = true;
	exchange_all(true);
}

/* ---------------------------------------------------------------- for gdb */

#ifdef __GLIBC__
extern __typeof__(dladdr1) dladdr1 __attribute__((weak)); /* a child of musl has none */
#endif

/* used finds the function that the program calls. Of a program that takes a function's
 * address, dlsym may return a place in the program that leads to the function. */
static void *used(const char *name)
{
	void *p = dlsym(RTLD_DEFAULT, name);
#ifdef __GLIBC__
	Dl_info info;
	const ElfW(Sym) *symbol = NULL;

	if (p && &dladdr1 && dladdr1(p, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol && symbol->st_shndx == SHN_UNDEF)
		return dlsym(RTLD_NEXT, name);
#endif
	return p;
}

/* lwsbt_memory returns a descriptor of memory for the rings, which btrecord sets up, or -1. */
EXPORT int lwsbt_memory(int recorder)
{
#ifdef SYS_memfd_create
	char name[32];

	snprintf(name, sizeof name, "lwsbt.%d", recorder);
	return (int)syscall(SYS_memfd_create, name, 1u | 2u); /* MFD_CLOEXEC, MFD_ALLOW_SEALING */
#else
	(void)recorder;
	return -1;
#endif
}

/* lwsbt_attach begins recording into the memory of lwsbt_memory, and closes it. It
 * returns the number of slots that lead to the hooks now; 0: nothing is recorded, -1: the
 * library was preloaded, -2: the memory cannot be used, -3: the program has its own malloc. */
EXPORT int lwsbt_attach(int fd)
{
	char path[32];
	struct module m;

	if (module_at((uintptr_t)dlsym(RTLD_DEFAULT, "lwsbt_attach"), &m) && (uintptr_t)of_module - m.start >= m.end - m.start)
		return -1;
	if (program_has_malloc())
		return -3;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	start(used);
	hooks_attach(used);
	bool started = process_start(path, true);
	close(fd);
	if (!started)
		return -2;
	/* Events are recorded once all slots lead here: else blocks would be freed unseen. */
	uint32_t mode = __atomic_exchange_n(&gate->ring->mode, 0, __ATOMIC_ACQ_REL);
	attached = true;
	unsigned n = exchange_all(true);
	__atomic_store_n(&gate->ring->mode, mode, __ATOMIC_RELEASE);
	return (int)n;
}

/* lwsbt_detach ends recording, and returns the number of slots that lead to the C library
 * again. */
EXPORT int lwsbt_detach(void)
{
	if (gate->ring) {
		fixed.children = 0;
		__atomic_store_n(&gate->ring->mode, 0, __ATOMIC_RELEASE);
	}
	attached = false;
	return (int)exchange_all(false);
}
