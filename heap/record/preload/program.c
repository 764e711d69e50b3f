/*
 * Programs with a malloc of their own, such as a static jemalloc: their calls do not
 * reach a preloaded library, and neither do those of the libraries, since the program
 * comes first. So its functions are patched: see patch.c. Compiled with frame pointers: see CALLER.
 *
 * Such functions call each other, as calloc calls malloc: only the outermost call is
 * recorded. But a block of the program may end in an inner call, as where an allocator's
 * hook for samples frees a table that was made outside of it.
 */
#define _GNU_SOURCE
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include "patch.h"
#include "process.h"

uint8_t program_hooks;

typedef uintptr_t word;
typedef word (*any_fn)(word, word, word);

/* One of each function, for each prefix of names. */
#define C_FUNCTIONS(F, p) \
	F(p, malloc, ALLOC, a) F(p, calloc, ALLOC, a * b) F(p, realloc, MOVE, b) F(p, memalign, ALLOC, b) F(p, aligned_alloc, ALLOC, b) \
	F(p, valloc, ALLOC, a) F(p, pvalloc, ALLOC, a) F(p, posix_memalign, OUT, c) F(p, free, FREE, a) F(p, cfree, FREE, a) \
	F(p, free_sized, FREE, a) F(p, free_aligned_sized, FREE, a)
/* operator new and delete, their arrays, and those with nothrow, sizes and alignments. */
#define CPP_FUNCTIONS(F) \
	F(, _Znwm, ALLOC, a) F(, _Znam, ALLOC, a) F(, _ZnwmRKSt9nothrow_t, ALLOC, a) F(, _ZnamRKSt9nothrow_t, ALLOC, a) \
	F(, _ZnwmSt11align_val_t, ALLOC, a) F(, _ZnamSt11align_val_t, ALLOC, a) \
	F(, _ZnwmSt11align_val_tRKSt9nothrow_t, ALLOC, a) F(, _ZnamSt11align_val_tRKSt9nothrow_t, ALLOC, a) \
	F(, _ZdlPv, FREE, a) F(, _ZdaPv, FREE, a) F(, _ZdlPvm, FREE, a) F(, _ZdaPvm, FREE, a) \
	F(, _ZdlPvRKSt9nothrow_t, FREE, a) F(, _ZdaPvRKSt9nothrow_t, FREE, a) \
	F(, _ZdlPvSt11align_val_t, FREE, a) F(, _ZdaPvSt11align_val_t, FREE, a) \
	F(, _ZdlPvmSt11align_val_t, FREE, a) F(, _ZdaPvmSt11align_val_t, FREE, a) \
	F(, _ZdlPvSt11align_val_tRKSt9nothrow_t, FREE, a) F(, _ZdaPvSt11align_val_tRKSt9nothrow_t, FREE, a)
#define ALL_FUNCTIONS(F) C_FUNCTIONS(F, ) CPP_FUNCTIONS(F) C_FUNCTIONS(F, je_)

#define NUMBER(p, name, how, size) NR_##p##name,
enum { ALL_FUNCTIONS(NUMBER) NUMBERS };

static any_fn original[NUMBERS];

/* inner reports whether a call comes from within another one. After a siglongjmp out of
 * that one, the next call from a frame further out ends it. */
static inline bool inner(uintptr_t frame)
{
	return self.outer && frame < self.outer;
}

/* pass calls a function. block is what it frees or moves, 0 if it does not. */
static inline word pass(unsigned i, word a, word b, word c, word block)
{
	self.outer = (uintptr_t)__builtin_frame_address(0);
	self.outer_block = block;
	word r = original[i](a, b, c);
	self.outer = 0;
	return r;
}

/* pass_inner calls a function within another one. The block ends here if the outer call is
 * not about it. Most such blocks are of inner calls, too: btrecord does not know them. */
static word pass_inner(unsigned i, word a, word b, word c, word block)
{
	if (block && block != self.outer_block && on(RING_FREES) && (!gate->ring->sample || sample_has(block)))
		record_end((void *)block);
	return original[i](a, b, c);
}

static word call_alloc(unsigned i, word a, word b, word c, size_t size, const struct regs *from)
{
	if (inner((uintptr_t)__builtin_frame_address(0)))
		return original[i](a, b, c);
	bool wanted = on(RING_ALLOCS);
	word p = pass(i, a, b, c, 0);
	if (wanted && p)
		keep((void *)p, size, from);
	return p;
}

static word call_out(unsigned i, word a, word b, word c, size_t size, const struct regs *from)
{
	if (inner((uintptr_t)__builtin_frame_address(0)))
		return original[i](a, b, c);
	bool wanted = on(RING_ALLOCS);
	word e = pass(i, a, b, c, 0);
	if (wanted && !(int)e && *(void **)a)
		keep(*(void **)a, size, from);
	return e;
}

static word call_free(unsigned i, word a, word b, word c, size_t size, const struct regs *from)
{
	(void)size;
	if (inner((uintptr_t)__builtin_frame_address(0)))
		return pass_inner(i, a, b, c, a);
	if (a && on(RING_FREES) && (!gate->ring->sample || sample_has(a)))
		record_free((void *)a, from->pc);
	return pass(i, a, b, c, a);
}

#define MOVES(p, name, how, size) how##_REAL(p##name)
#define ALLOC_REAL(n)
#define OUT_REAL(n)
#define FREE_REAL(n)
#define MOVE_REAL(n) \
	static void *real_##n(void *p, size_t size) { return (void *)pass(NR_##n, (word)p, size, 0, (word)p); } \
	static word call_##n(word a, word b, const struct regs *from) \
	{ \
		if (inner((uintptr_t)__builtin_frame_address(0))) \
			return pass_inner(NR_##n, a, b, 0, a); \
		if (!on(RING_ALLOCS | RING_FREES)) \
			return pass(NR_##n, a, b, 0, a); \
		return (word)record_move((void *)a, b, from, real_##n); \
	}
ALL_FUNCTIONS(MOVES)

#define HOOK_ALLOC(n, size) call_alloc(NR_##n, a, b, c, size, &from)
#define HOOK_OUT(n, size) call_out(NR_##n, a, b, c, size, &from)
#define HOOK_FREE(n, size) call_free(NR_##n, a, b, c, size, &from)
#define HOOK_MOVE(n, size) call_##n(a, b, &from)
#define DEFINE(p, name, how, size) \
	static NOINLINE word hook_##p##name(word a, word b, word c) \
	{ \
		struct regs from = CALLER; \
		(void)b, (void)c; \
		return HOOK_##how(p##name, size); \
	}
ALL_FUNCTIONS(DEFINE)

#define ENTRY(p, name, how, size) {#p #name, (void *)hook_##p##name},
static const struct {
	const char *name;
	void *hook;
} functions[NUMBERS] = {ALL_FUNCTIONS(ENTRY)};

/* The symbols that the program exports. dlsym is not called: it may allocate. */
struct exports {
	const ElfW(Sym) *symbols;
	const char *strings;
	size_t n;
	uintptr_t base;
};

/* hashed returns the number of symbols, as the hash table says it. */
static size_t hashed(const uint32_t *h)
{
	const uint32_t *buckets = (const uint32_t *)((const ElfW(Addr) *)(h + 4) + h[2]), *chain = buckets + h[0];
	uint32_t last = 0;

	for (uint32_t i = 0; i < h[0]; i++)
		last = buckets[i] > last ? buckets[i] : last;
	if (last < h[1])
		return last;
	while (!(chain[last - h[1]] & 1))
		last++;
	return last + 1;
}

static struct exports exports_of_program(void)
{
	const ElfW(Phdr) *h = (const ElfW(Phdr) *)getauxval(AT_PHDR);
	struct exports x = {0};
	const ElfW(Dyn) *d = NULL;

	for (size_t i = 0; h && i < getauxval(AT_PHNUM); i++)
		if (h[i].p_type == PT_PHDR)
			x.base = (uintptr_t)h - h[i].p_vaddr;
	for (size_t i = 0; h && i < getauxval(AT_PHNUM); i++)
		if (h[i].p_type == PT_DYNAMIC)
			d = (const ElfW(Dyn) *)(x.base + h[i].p_vaddr);
	for (; d && d->d_tag != DT_NULL; d++) {
		/* The dynamic linker has added the load base, but not everywhere. */
		uintptr_t p = d->d_un.d_ptr + (d->d_un.d_ptr < x.base ? x.base : 0);
		switch (d->d_tag) {
		case DT_SYMTAB: x.symbols = (const ElfW(Sym) *)p; break;
		case DT_STRTAB: x.strings = (const char *)p; break;
		case DT_HASH: x.n = ((const uint32_t *)p)[1]; break;
		case DT_GNU_HASH: x.n = hashed((const uint32_t *)p); break;
		}
	}
	return x;
}

static void *find(const struct exports *x, const char *name)
{
	for (size_t i = 0; x->symbols && x->strings && i < x->n; i++) {
		const ElfW(Sym) *s = &x->symbols[i];
		if (s->st_shndx != SHN_UNDEF && s->st_value && (s->st_info & 15) == STT_FUNC && !strcmp(x->strings + s->st_name, name))
			return (void *)(x->base + s->st_value);
	}
	return NULL;
}

bool program_has_malloc(void)
{
	struct exports x = exports_of_program();

	return find(&x, "malloc") || find(&x, "je_malloc");
}

static unsigned prepare(const struct exports *x, struct patch *list)
{
	unsigned n = 0;

	for (unsigned i = 0; i < NUMBERS; i++) {
		struct patch p = {find(x, functions[i].name), functions[i].hook, NULL, NULL, 0};
		bool known = !p.function;
		for (unsigned k = 0; k < n; k++)
			known |= list[k].function == p.function; /* by another name */
		if (known)
			continue;
		if (!patch_prepare(&p))
			return 0;
		for (unsigned k = 0; k < n; k++)
			known |= list[k].entry == p.entry;
		if (known)
			continue;
		original[i] = (any_fn)p.original;
		list[n++] = p;
	}
	return n;
}

void program_start(void)
{
	struct patch list[NUMBERS];

	if (!program_has_malloc())
		return;
	struct exports x = exports_of_program();
	unsigned n = prepare(&x, list);
	program_hooks = n && patch_apply(list, n) ? RING_HOOKS_PROGRAM : RING_HOOKS_NONE;
}
