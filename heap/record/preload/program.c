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
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
	if (block && block != self.outer_block && on(RING_FREES) && (!fixed.sample || sample_has(block)))
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
	if (a && on(RING_FREES) && (!fixed.sample || sample_has(a)))
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

/*
 * A compiler that sees a function of the program and its caller knows which registers the function
 * leaves alone, and the caller relies on that (-fipa-ra). So a hook changes no register but that
 * of the result: hook_X keeps the others, and calls body_X. Functions of the C library may
 * use the upper parts of vector registers, so the hooks call none that does: see plain.c.
 */
#if defined(__x86_64__) && defined(__LP64__)
#define XMM(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15)
#define SAVE(n) "movups %xmm" #n ", 16*" #n "(%rsp)\n"
#define LOAD(n) "movups 16*" #n "(%rsp), %xmm" #n "\n"
#define KEEP(name, result) \
	"lwsbt_" name ": .cfi_startproc\n.cfi_def_cfa %rbp, 16\n.cfi_offset %rbp, -16\n" \
	"push %rcx\npush %rdx\npush %rsi\npush %rdi\npush %r8\npush %r9\npush %r10\npush %r11\nsub $264, %rsp\n" XMM(SAVE) \
	"call *%rax\n" XMM(LOAD) \
	"add $264, %rsp\npop %r11\npop %r10\npop %r9\npop %r8\npop %rdi\npop %rsi\npop %rdx\npop %rcx\n" result \
	"leave\n.cfi_def_cfa %rsp, 8\nret\n.cfi_endproc\n"
__asm__(".text\n" KEEP("keep", "") KEEP("keep_all", "mov -8(%rbp), %rax\n"));

/* What the wrapper stored at its frame: the caller's frame pointer and the return address. */
#define WRAPPER (*(uintptr_t **)__builtin_frame_address(0))
#define FROM ((struct regs){WRAPPER[1], (uintptr_t)(WRAPPER + 2), WRAPPER[0]})
#define ALLOC_KEEP "keep"
#define OUT_KEEP "keep"
#define MOVE_KEEP "keep"
#define FREE_KEEP "keep_all"
#define WRAP(n, how) \
	word hook_##n(word, word, word); \
	__asm__("hook_" #n ": .cfi_startproc\npush %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\n" \
		"mov %rsp, %rbp\n.cfi_def_cfa_register %rbp\npush %rax\nlea body_" #n "(%rip), %rax\njmp lwsbt_" how##_KEEP "\n.cfi_endproc\n");
#else
#define FROM CALLER
#define WRAP(n, how) static word hook_##n(word a, word b, word c) { return body_##n(a, b, c); }
#endif

#define DEFINE(p, name, how, size) \
	static __attribute__((noinline, used)) word body_##p##name(word a, word b, word c) \
	{ \
		struct regs from = FROM; \
		(void)b, (void)c; \
		return HOOK_##how(p##name, size); \
	} \
	WRAP(p##name, how)
ALL_FUNCTIONS(DEFINE)

#define ENTRY(p, name, how, size) {#p #name, (void *)hook_##p##name},
static const struct {
	const char *name;
	void *hook;
} functions[NUMBERS] = {ALL_FUNCTIONS(ENTRY)};

/* Symbols of the program: those that it exports, or all. dlsym is not called: it may allocate. */
struct symbols {
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

static struct symbols exports_of_program(void)
{
	const ElfW(Phdr) *h = (const ElfW(Phdr) *)getauxval(AT_PHDR);
	struct symbols x = {0};
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

/* symbols_of_file reads the symbol table of the program's file, if there is a malloc in it: one that
 * is not exported, as with -Wl,--exclude-libs. */
static struct symbols symbols_of_file(uintptr_t base)
{
	struct symbols x = {.base = base};
	struct stat info;
	int f = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const char *file = f >= 0 && !fstat(f, &info) ? mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, f, 0) : MAP_FAILED;

	if (f >= 0)
		close(f);
	if (file == MAP_FAILED)
		return x;
	const ElfW(Ehdr) *e = (const void *)file;
	size_t size = (size_t)info.st_size;
	const ElfW(Shdr) *sections = (const void *)(file + e->e_shoff);
	bool sound = size > sizeof *e && e->e_shentsize == sizeof *sections && e->e_shoff % sizeof(word) == 0 && e->e_shoff < size &&
		e->e_shnum <= (size - e->e_shoff) / sizeof *sections;
	for (size_t i = 0; sound && i < e->e_shnum; i++) {
		const ElfW(Shdr) *s = &sections[i], *t = &sections[s->sh_link < e->e_shnum ? s->sh_link : 0];
		if (s->sh_type != SHT_SYMTAB || s->sh_offset % sizeof(word) || s->sh_offset > size || s->sh_size > size - s->sh_offset ||
		    t->sh_offset > size || t->sh_size > size - t->sh_offset || !t->sh_size || file[t->sh_offset + t->sh_size - 1] ||
		    !memmem(file + t->sh_offset, t->sh_size, "malloc", sizeof "malloc"))
			continue;
		x.symbols = (const void *)(file + s->sh_offset);
		x.n = s->sh_size / sizeof *x.symbols;
		x.strings = file + t->sh_offset;
		for (size_t k = 0; k < x.n; k++)
			if (x.symbols[k].st_name >= t->sh_size)
				x.n = k;
	}
	if (!x.n)
		munmap((void *)(uintptr_t)file, size);
	return x;
}

static void *find(const struct symbols *x, const char *name)
{
	for (size_t i = 0; x->symbols && x->strings && i < x->n; i++) {
		const ElfW(Sym) *s = &x->symbols[i];
		if (s->st_shndx != SHN_UNDEF && s->st_value && (s->st_info & 15) == STT_FUNC && !strcmp(x->strings + s->st_name, name))
			return (void *)(x->base + s->st_value);
	}
	return NULL;
}

/* imports reports whether the program has a function of this name from a library. */
static bool imports(const struct symbols *x, const char *name)
{
	for (size_t i = 1; x->symbols && x->strings && i < x->n; i++)
		if (x->symbols[i].st_shndx == SHN_UNDEF && !strcmp(x->strings + x->symbols[i].st_name, name))
			return true;
	return false;
}

/* is_twice reports whether another function has the same name: a static one. */
static bool is_twice(const struct symbols *x, const char *name, const void *function)
{
	struct symbols rest = *x;

	for (; function && rest.n; rest.symbols++, rest.n--)
		if (rest.symbols->st_value + x->base != (uintptr_t)function && !strcmp(x->strings + rest.symbols->st_name, name) &&
		    rest.symbols->st_shndx != SHN_UNDEF && (rest.symbols->st_info & 15) == STT_FUNC)
			return true;
	return false;
}

static bool has_malloc(const struct symbols *x)
{
	return find(x, "malloc") || find(x, "je_malloc");
}

/* symbols_of_allocator finds the malloc of the program, and reports whether it has one. other: it
 * calls one of another name, that of Rust's jemalloc or of mimalloc, also in a library. */
static bool symbols_of_allocator(struct symbols *x, bool *other)
{
	*x = exports_of_program();
	*other = imports(x, "mi_malloc") || imports(x, "mi_free");
	if (!has_malloc(x))
		*x = symbols_of_file(x->base);
	*other |= find(x, "_rjem_malloc") || (!has_malloc(x) && find(x, "mi_free"));
	return has_malloc(x);
}

bool program_has_malloc(void)
{
	struct symbols x;
	bool other;

	return symbols_of_allocator(&x, &other) || other;
}

static unsigned prepare(const struct symbols *x, struct patch *list)
{
	unsigned n = 0;

	for (unsigned i = 0; i < NUMBERS; i++) {
		struct patch p = {find(x, functions[i].name), functions[i].hook, NULL, NULL, 0};
		if (is_twice(x, functions[i].name, p.function))
			return 0;
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
	struct symbols x;
	bool other;
	unsigned n = 0;

	if (!symbols_of_allocator(&x, &other) && !other)
		return;
	if (!other)
		n = prepare(&x, list);
	program_hooks = n && patch_apply(list, n) ? RING_HOOKS_PROGRAM : RING_HOOKS_NONE;
}
