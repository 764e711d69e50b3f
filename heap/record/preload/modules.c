/*
 * What is loaded. The C library's _dl_find_object finds the module of an address
 * without a lock. Where there is none (musl, glibc before 2.35), the list that debuggers
 * read is read, every part of it checked: a module of which there is an address on the
 * stack stays in it meanwhile.
 *
 * A module is told to btrecord before the first stack with an address of it. An address
 * can be of one module now and of another one later, so after each unload all are told
 * again. Unloads are seen as dlclose returns, and as the dynamic linker frees
 * memory, which it does after them. There is no hook around dlopen, whose meaning depends on its
 * caller.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "preload.h"

#ifndef PT_GNU_EH_FRAME
#define PT_GNU_EH_FRAME 0x6474e550
#endif
#ifndef NT_GNU_BUILD_ID
#define NT_GNU_BUILD_ID 3
#endif

uintptr_t loader_lo, loader_size, walk_salt = 1;
char program_path[PATH_MAX];

/* ---------------------------------------------------------------- program headers */

struct headers {
	const ElfW(Phdr) *h;
	unsigned n;
};

/* at_header reads the ELF header at an address that can be read. */
static bool at_header(uintptr_t start, struct headers *hs)
{
	const ElfW(Ehdr) *e = (const ElfW(Ehdr) *)start;

	if (start % WORD || memcmp(e->e_ident, ELFMAG, SELFMAG) || e->e_phentsize != sizeof *hs->h ||
	    e->e_phoff % WORD || e->e_phoff + e->e_phnum * sizeof *hs->h > PAGE)
		return false;
	*hs = (struct headers){(const ElfW(Phdr) *)(start + e->e_phoff), e->e_phnum};
	return true;
}

static struct headers of_program(void)
{
	return (struct headers){(const ElfW(Phdr) *)getauxval(AT_PHDR), (unsigned)getauxval(AT_PHNUM)};
}

/* span finds where a module's memory begins and ends, and its table. */
static bool span(struct module *m, const struct headers *hs)
{
	m->start = UINTPTR_MAX;
	m->end = m->table = 0;
	for (unsigned i = 0; i < hs->n; i++) {
		uintptr_t at = m->base + hs->h[i].p_vaddr, end = at + hs->h[i].p_memsz;
		if (hs->h[i].p_type == PT_LOAD) {
			m->start = at < m->start ? at : m->start;
			m->end = end > m->end ? end : m->end;
		} else if (hs->h[i].p_type == PT_GNU_EH_FRAME)
			m->table = at;
	}
	return m->start < m->end;
}

/* ---------------------------------------------------------------- finding one */

/* of_list looks in the dynamic linker's list. */
extern struct r_debug _r_debug __attribute__((weak));
extern struct r_debug *_dl_debug_addr __attribute__((weak));

static bool can_read(const void *p, size_t n)
{
	return (uintptr_t)p % WORD == 0 && readable((uintptr_t)p) && readable((uintptr_t)p + n - 1);
}

static bool of_list(uintptr_t pc, struct module *m)
{
	const struct r_debug *d = &_r_debug ? &_r_debug : &_dl_debug_addr ? _dl_debug_addr : NULL;
	const struct link_map *l = d ? d->r_map : NULL;
	bool first = true;

	for (unsigned n = 0; l && n < 65536 && can_read(l, offsetof(struct link_map, l_prev)); n++, l = l->l_next, first = false) {
		struct headers hs;
		m->base = l->l_addr;
		if (first)
			hs = of_program();
		else if (!can_read((const void *)m->base, PAGE) || !at_header(m->base, &hs))
			continue;
		if (!span(m, &hs) || pc - m->start >= m->end - m->start)
			continue;
		m->name = first ? program_path : can_read((const void *)((uintptr_t)l->l_name & ~(WORD - 1)), WORD) ? l->l_name : "";
		return true;
	}
	return false;
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE

extern int _dl_find_object(void *, struct dl_find_object *) __attribute__((weak));

bool module_at(uintptr_t pc, struct module *m)
{
	struct dl_find_object f;

	if (!&_dl_find_object)
		return of_list(pc, m);
	if (_dl_find_object((void *)pc, &f))
		return false;
	const struct link_map *l = f.dlfo_link_map;
	struct headers hs;
	m->base = l->l_addr;
	m->name = l->l_name && *l->l_name ? l->l_name : program_path;
	/* What it says of a module with gaps is one part of it. */
	if (m->name == program_path)
		hs = of_program();
	else if (m->base != (uintptr_t)f.dlfo_map_start && !readable(m->base))
		return false;
	else if (!at_header(m->base, &hs))
		return false;
	return span(m, &hs);
}

#else

bool module_at(uintptr_t pc, struct module *m)
{
	return of_list(pc, m);
}

#endif

/* ---------------------------------------------------------------- telling it */

static const uint8_t *build_id(const struct module *m, const struct headers *hs, size_t *bytes)
{
	for (unsigned i = 0; i < hs->n; i++) {
		const ElfW(Phdr) *h = &hs->h[i];
		uintptr_t p = m->base + h->p_vaddr, size = h->p_memsz;

		if (h->p_type != PT_NOTE || p < m->start || p >= m->end || size > m->end - p)
			continue;
		while (size >= sizeof(ElfW(Nhdr))) {
			const ElfW(Nhdr) *n = (const ElfW(Nhdr) *)p;
			size_t name = (n->n_namesz + 3) & ~3u, desc = (n->n_descsz + 3) & ~3u, all = sizeof *n + name + desc;
			if (name > size || desc > size || all > size)
				break;
			const char *d = (const char *)p + sizeof *n;
			if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 && !memcmp(d, "GNU", 4) && n->n_descsz <= 64) {
				*bytes = n->n_descsz;
				return (const uint8_t *)d + name;
			}
			p += all;
			size -= all;
		}
	}
	*bytes = 0;
	return NULL;
}

/* Where the modules that were told begin. */
#define TOLD 1024u
static uintptr_t told[TOLD];
static uint32_t tolds;
static uint32_t unloads;

static bool is_told(uintptr_t start)
{
	uint32_t n = __atomic_load_n(&tolds, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n && i < TOLD; i++)
		if (__atomic_load_n(&told[i], __ATOMIC_ACQUIRE) == start)
			return true;
	return false;
}

static uint64_t *fill(uint64_t *w, const void *p, size_t n)
{
	size_t words = (n + 7) / 8;

	memset(w, 0, words * 8);
	if (n)
		memcpy(w, p, n);
	return w + words;
}

#define SEGMENTS 200 /* at most, so that a record has place for them */

/* fill_segments puts the segments of a module. Without its headers, its memory is one. */
static uint64_t *fill_segments(uint64_t *w, const struct module *m, const struct headers *hs)
{
	uint64_t *end = w;

	for (unsigned i = 0; i < hs->n && end < w + 2 * SEGMENTS; i++) {
		const ElfW(Phdr) *h = &hs->h[i];
		if (h->p_type != PT_LOAD || !h->p_memsz)
			continue;
		*end++ = h->p_vaddr;
		*end++ = (uint64_t)h->p_memsz << 3 | (h->p_flags & (PF_R | PF_W | PF_X));
	}
	if (end == w) {
		*end++ = m->start - m->base;
		*end++ = (uint64_t)(m->end - m->start) << 3 | PF_R | PF_X;
	}
	return end;
}

bool module_tell(struct own *o, const struct module *m)
{
	uint32_t before = __atomic_load_n(&unloads, __ATOMIC_ACQUIRE);
	struct headers hs = {0};
	uint64_t *w, *end;
	size_t id_bytes, bytes = 0;

	if (is_told(m->start))
		return true;
	if (!(w = reserve(o)))
		return false;
	if (m->name == program_path)
		hs = of_program();
	else if (m->base == m->start || readable(m->base))
		at_header(m->base, &hs);
	while (bytes < PATH_MAX - 1 && m->name[bytes])
		bytes++;
	const uint8_t *id = build_id(m, &hs, &id_bytes);
	w[1] = m->base;
	end = fill_segments(w + 3, m, &hs);
	w[2] = bytes | (uint64_t)id_bytes << 16 | (uint64_t)((end - w - 3) / 2) << 24;
	end = fill(fill(end, id, id_bytes), m->name, bytes);
	publish(o, w, stamp(), cfi_lacks(m) ? RING_FRAMES : 0, RING_MODULE, (uint32_t)(end - w));
	/* Others may do the same at the same time. */
	if (before == __atomic_load_n(&unloads, __ATOMIC_ACQUIRE)) {
		uint32_t i = __atomic_fetch_add(&tolds, 1, __ATOMIC_ACQ_REL);
		if (i < TOLD)
			__atomic_store_n(&told[i], m->start, __ATOMIC_RELEASE);
	}
	return true;
}

/* walk_forget has all threads forget their stacks and rules: modules are gone. */
static void walk_forget(void)
{
	__atomic_fetch_add(&walk_salt, 1, __ATOMIC_RELEASE);
}

void modules_unloaded(struct own *o)
{
	uint64_t *w = reserve(o);

	if (w)
		publish(o, w, stamp(), 0, RING_UNLOADED, 1);
	__atomic_fetch_add(&unloads, 1, __ATOMIC_ACQ_REL);
	__atomic_store_n(&tolds, 0, __ATOMIC_RELEASE);
	walk_forget();
}

/* A child tells its own. */
void modules_child(void)
{
	tolds = 0;
	walk_forget();
}

/* ---------------------------------------------------------------- the start */

void modules_start(void)
{
	ssize_t n = 0;

	/* Started by its loader's name, the loader is what was executed. */
	if (getauxval(AT_BASE))
		n = readlink("/proc/self/exe", program_path, sizeof program_path - 1);
	else if (realpath(program_invocation_name, program_path))
		n = (ssize_t)strlen(program_path);
	program_path[n > 0 ? n : 0] = 0;
#if defined(__GLIBC__)
	struct module m = {.base = getauxval(AT_BASE)};
	struct headers hs;
	if (m.base && at_header(m.base, &hs) && span(&m, &hs)) {
		loader_lo = m.start;
		loader_size = m.end - m.start;
	}
#endif
}
