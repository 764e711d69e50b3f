/*
 * What is loaded. The C library counts modules that it loaded and unloaded;
 * the list is read again when the counts have changed. They are looked at when
 * something may have happened: the dynamic linker allocated or freed memory, as it
 * does for each dlopen and dlclose; a stack had an address that no known module
 * has; dlclose returned; and at every 64th allocation of a thread. So there is no
 * hook around dlopen, whose meaning depends on its caller.
 *
 * An address can be of one module now and of another one later. Unloads begin a
 * new epoch; a stack belongs to the one in which it was taken, and rules kept for
 * return addresses are forgotten.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <sched.h>
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

#define SEGMENTS 12

struct module {
	struct module *next;
	uint32_t id;		/* in the recording */
	uint32_t born, dead;	/* epochs: there from born to before dead */
	bool seen;		/* in the list that is being read */
	uintptr_t base, lo, hi, table;
	uint8_t segments, id_len, id_bytes[32];
	struct {
		uintptr_t lo, size;
		uint8_t flags;
	} segment[SEGMENTS];
	char name[];
};

bool modules_stale = true;
uint32_t modules_epoch;
uintptr_t loader_lo, loader_hi;

static lock_t modules_locked;
static struct module *all, *last;
static uint32_t ids;
static uint64_t adds, subs;
static bool written; /* a map is in the recording */

void modules_lock(void) { lock(&modules_locked); }
bool modules_try_lock(void) { return lock_try(&modules_locked); }
void modules_unlock(void) { unlock(&modules_locked); }

/* Counters read without the lock of ours: dl_iterate_phdr takes one of its own, which
 * a thread may hold while it waits for ours. */
struct counters {
	uint64_t adds, subs;
};

static int count(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct counters *c = arg;

	if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs) {
		c->adds = info->dlpi_adds;
		c->subs = info->dlpi_subs;
	}
	return 1;
}

/* ---------------------------------------------------------------- reading the list */

/* The list as dl_iterate_phdr tells it, in memory for the time being. */
struct reading {
	struct counters counters;
	bool any, failed;
	struct module *list, **end;
	char *at, *limit;
};
#define READING ((size_t)1 << 20) /* bytes: some thousand modules */

static void build_id(struct module *m, const char *p, size_t size)
{
	while (size >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) n;
		memcpy(&n, p, sizeof n);
		size_t name = (n.n_namesz + 3) & ~3u, desc = (n.n_descsz + 3) & ~3u;
		if (sizeof n + name + desc > size)
			return;
		const char *d = p + sizeof n + name;
		if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && !memcmp(p + sizeof n, "GNU", 4) &&
		    n.n_descsz <= sizeof m->id_bytes) {
			m->id_len = (uint8_t)n.n_descsz;
			memcpy(m->id_bytes, d, n.n_descsz);
			return;
		}
		p += sizeof n + name + desc;
		size -= sizeof n + name + desc;
	}
}

static struct module *known(uintptr_t base, const char *name)
{
	/* In an epoch that still runs, a base is one module's. */
	for (struct module *m = all; m; m = m->next)
		if (m->dead == UINT32_MAX && m->base == base && (!*name || !strcmp(m->name, name)))
			return m;
	return NULL;
}

/* list_one is called for each module, with the C library's lock held. Known
 * modules are marked; others are described by a new struct. */
static int list_one(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct reading *r = arg;
	char path[PATH_MAX];
	const char *name = info->dlpi_name ? info->dlpi_name : "";
	bool first = !r->any;

	if (first) {
		r->any = true;
		count(info, size, &r->counters);
	}
	if (*name != '/' && first) { /* glibc has no name of the program, musl what was typed */
		/* Started by its loader's name, the loader is what was executed. */
		ssize_t n = 0;
		if (getauxval(AT_BASE))
			n = readlink("/proc/self/exe", path, sizeof path - 1);
		else if (realpath(program_invocation_name, path))
			n = (ssize_t)strlen(path);
		path[n > 0 ? n : 0] = 0;
		name = path;
	}
	size_t bytes = (sizeof(struct module) + strlen(name) + 16) & ~(size_t)7;
	if ((size_t)(r->limit - r->at) < bytes) {
		r->failed = true;
		return 1;
	}
	struct module *m = (struct module *)(void *)r->at;
	r->at += bytes;
	strcpy(m->name, *name ? name : "[vdso]");
	m->base = info->dlpi_addr;
	m->dead = UINT32_MAX;
	m->lo = UINTPTR_MAX;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + h->p_vaddr;
		switch (h->p_type) {
		case PT_LOAD:
			if (m->segments < SEGMENTS) {
				m->segment[m->segments].lo = at;
				m->segment[m->segments].size = h->p_memsz;
				m->segment[m->segments++].flags = (uint8_t)h->p_flags;
			}
			if (at < m->lo)
				m->lo = at;
			if (at + h->p_memsz > m->hi)
				m->hi = at + h->p_memsz;
			break;
		case PT_NOTE:
			if (!m->id_len)
				build_id(m, (const char *)at, h->p_memsz);
			break;
		case PT_GNU_EH_FRAME:
			m->table = at;
			break;
		}
	}
	*r->end = m;
	r->end = &m->next;
	return 0;
}

/* ---------------------------------------------------------------- writing */

/* Every address of it is that of the module's file: relative to its base. */
static void write_module(const struct module *m)
{
	char *p = out_line(256 + strlen(m->name) * 3);

	if (!p)
		return;
	p = put_dec(put_text(p, "{{{module:"), m->id);
	*p++ = ':';
	for (const char *s = m->name; *s; s++)
		if (*s == '{' || *s == '}' || *s == ':' || *s == '%' || (unsigned char)*s < ' ') {
			*p++ = '%';
			*p++ = "0123456789abcdef"[(unsigned char)*s >> 4];
			*p++ = "0123456789abcdef"[*s & 15];
		} else
			*p++ = *s;
	p = put_text(p, ":elf:");
	for (unsigned i = 0; i < m->id_len; i++) {
		*p++ = "0123456789abcdef"[m->id_bytes[i] >> 4];
		*p++ = "0123456789abcdef"[m->id_bytes[i] & 15];
	}
	out_commit(put_text(p, "}}}\n"));
	for (unsigned i = 0; i < m->segments; i++) {
		if (!(p = out_line(128)))
			return;
		p = put_hex(put_text(p, "{{{mmap:"), m->segment[i].lo);
		p = put_hex(put_text(p, ":"), m->segment[i].size);
		p = put_dec(put_text(p, ":load:"), m->id);
		*p++ = ':';
		if (m->segment[i].flags & PF_R)
			*p++ = 'r';
		if (m->segment[i].flags & PF_W)
			*p++ = 'w';
		if (m->segment[i].flags & PF_X)
			*p++ = 'x';
		p = put_hex(put_text(p, ":"), m->segment[i].lo - m->base);
		out_commit(put_text(p, "}}}\n"));
	}
}

static bool write_map_line(const char *verb)
{
	char *p = out_line(64);

	if (!p)
		return false;
	p = put_dec(put_text(put_text(put_text(p, "~h#"), verb), " t="), now());
	out_commit(put_text(p, "\n"));
	return true;
}

void modules_write_epoch(uint32_t epoch)
{
	char *p;

	if (!write_map_line("map") || !(p = out_line(16)))
		return;
	out_commit(put_text(p, "{{{reset}}}\n"));
	for (const struct module *m = all; m; m = m->next)
		if (m->born <= epoch && epoch < m->dead)
			write_module(m);
}

void modules_write(void)
{
	modules_write_epoch(modules_epoch);
	written = true;
}

/* ---------------------------------------------------------------- changes */

/* take makes the list that was read the one that counts. */
static void take(struct reading *r)
{
	bool less = false;
	struct module *fresh = NULL, **end = &fresh, *next;

	for (struct module *m = all; m; m = m->next)
		m->seen = false;
	for (struct module *m = r->list; m; m = next) {
		next = m->next;
		struct module *k = known(m->base, m->name);
		if (k && k->hi == m->hi && k->id_len == m->id_len &&
		    !memcmp(k->id_bytes, m->id_bytes, m->id_len)) {
			k->seen = true;
			continue;
		}
		size_t bytes = sizeof *m + strlen(m->name) + 8;
		struct module *stays = keep(bytes);
		if (!stays)
			break;
		memcpy(stays, m, sizeof *m + strlen(m->name) + 1);
		stays->next = NULL;
		stays->seen = true;
		*end = stays;
		end = &stays->next;
	}
	for (struct module *m = all; m; m = m->next)
		if (!m->seen && m->dead == UINT32_MAX) {
			m->dead = modules_epoch + 1;
			less = true;
		}
	if (less) {
		__atomic_store_n(&modules_epoch, modules_epoch + 1, __ATOMIC_RELEASE);
		walk_forget();
	}
	for (struct module *m = fresh; m; m = m->next) {
		m->id = ids++;
		m->born = modules_epoch;
	}
	if (fresh) {
		if (last)
			last->next = fresh;
		else
			all = fresh;
		for (last = fresh; last->next; last = last->next)
			;
	}
	adds = r->counters.adds;
	subs = r->counters.subs;
	if (!on || !written || !(less || fresh))
		return;
	lock(&out_lock);
	if (less)
		modules_write();
	else if (write_map_line("load"))
		for (const struct module *m = fresh; m; m = m->next)
			write_module(m);
	unlock(&out_lock);
}

/*
 * The C library's lock of its list is held during dl_iterate_phdr. A child of fork has
 * it as it was, so no thread may be there at a fork: whoever calls it holds this lock
 * of ours, and so does a fork. It is never waited for long: a thread may call us from
 * a function that dl_iterate_phdr calls.
 */
static lock_t iterating;
static bool held_by_fork, careful;

static bool begin_iterating(unsigned tries)
{
	while (!lock_try(&iterating)) {
		if (!tries--)
			return false;
		sched_yield();
	}
	return true;
}

void modules_before_fork(bool threads)
{
	held_by_fork = begin_iterating(100000);
	careful = threads; /* of the child: other threads of the program may be in there */
}

/* In the child, what was not to be had stays locked: modules are not looked for. */
void modules_after_fork(bool child)
{
	if (held_by_fork)
		unlock(&iterating);
	if (!child)
		careful = false;
}

bool modules_careful(void) { return careful; }

/*
 * modules_check looks whether modules came or went, and writes them down. The
 * order is that which loses nothing: what is watched, the counters, is read before
 * the list, and in the same hold of the C library's lock.
 */
void modules_check(void)
{
	struct counters c = {0, 0};
	int e = errno;

	if (!begin_iterating(1000))
		return; /* and again with the next allocation, if it has to be */
	__atomic_store_n(&modules_stale, false, __ATOMIC_SEQ_CST);
	dl_iterate_phdr(count, &c);
	if (all && c.adds == adds && c.subs == subs)
		goto unlock;
	struct reading r = {.end = &r.list};
	char *room = pages(READING);
	if (!room)
		goto unlock;
	r.at = room;
	r.limit = room + READING;
	dl_iterate_phdr(list_one, &r);
	unlock(&iterating);
	if (!r.failed) {
		modules_lock();
		/* Another thread may have read a later list meanwhile. */
		if (!all || r.counters.adds + r.counters.subs > adds + subs)
			take(&r);
		modules_unlock();
	}
	pages_free(room, READING);
	errno = e;
	return;
unlock:
	unlock(&iterating);
	errno = e;
}

void modules_init(void)
{
	uintptr_t loader = getauxval(AT_BASE);

	modules_check();
	for (const struct module *m = all; loader && m; m = m->next)
		if (m->lo == loader) {
			loader_lo = m->lo;
			loader_hi = m->hi;
		}
}

/* ---------------------------------------------------------------- questions */

static const struct module *at_epoch(uintptr_t pc, uint32_t epoch)
{
	for (const struct module *m = all; m; m = m->next)
		if (pc - m->lo < m->hi - m->lo && m->born <= epoch && epoch < m->dead)
			return m;
	return NULL;
}

bool modules_table(uintptr_t pc, uintptr_t *table)
{
	modules_lock();
	const struct module *m = at_epoch(pc, modules_epoch);
	*table = m ? m->table : 0;
	modules_unlock();
	return m;
}

/* lwsbt_in_code is asked by the backends that read code: see capture_code.h. */
int lwsbt_in_code(uintptr_t at, uintptr_t n)
{
	static __thread struct {
		uintptr_t lo, size;
		uint32_t epoch;
	} last __attribute__((tls_model("initial-exec")));

	if (last.size && last.epoch == modules_epoch && at - last.lo < last.size &&
	    last.size - (at - last.lo) >= n)
		return 1;
	modules_lock();
	const struct module *m = at_epoch(at, modules_epoch);
	int found = 0;
	for (unsigned i = 0; m && i < m->segments && !found; i++)
		if (m->segment[i].flags & PF_X && at - m->segment[i].lo < m->segment[i].size &&
		    m->segment[i].size - (at - m->segment[i].lo) >= n) {
			last.lo = m->segment[i].lo;
			last.size = m->segment[i].size;
			last.epoch = modules_epoch;
			found = 1;
		}
	modules_unlock();
	return found;
}

bool modules_moved(uintptr_t pc, uint32_t epoch)
{
	return at_epoch(pc, epoch) != at_epoch(pc, modules_epoch);
}
