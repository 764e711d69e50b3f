package main

import "strings"

const (
	backtrace = "lib/misc/backtrace.c"
	header    = "include/libwebsockets/lws-backtrace.h"
	alloc     = "lib/core/alloc.c"
	decode64  = "lib/misc/base64-decode.c"
	toolMain  = "minimal-examples-lowlevel/api-tests/api-test-backtrace/main.c"
	readme    = "READMEs/README.lws_backtrace.md"
)

// step is one change, for one commit.
type step struct {
	n       int
	class   string // A: readers of today see no change; B: output that was wrong changes; C: needs a decision
	subject string
	apply   func(*tree)
}

var steps = []step{
	{1, "-", "backtrace: tests of the codec", nil},
	{10, "A", "backtrace: read fields of any width, and ignore the bit after them", func(t *tree) {
		t.function(backtrace, "lws_backtrace_compression_destream", "01-destream.c", false)
	}},
	{11, "A", "backtrace: parse: reject lengths 0 and 1, and a delta as first level", func(t *tree) {
		t.function(backtrace, "lws_alloc_metadata_parse", "01-parse.c", true)
	}},
	{12, "A", "backtrace: parse: a bit count of 0 is one of 64", parse("02-parse.c")},
	{13, "A", "backtrace: parse: a depth of 0 can be one of 32", parse("03-parse.c")},
	{20, "A", "backtrace: do not write past the end of the buffer", func(t *tree) {
		t.function(backtrace, "lws_backtrace_compression_stream", "01-stream.c", false)
		t.function(backtrace, "lws_backtrace_compression_stream_init", "01-init.c", false)
		t.function(backtrace, "lws_backtrace_compress_backtrace", "01-compress.c", false)
		t.function(backtrace, "lws_alloc_metadata_gen", "01-gen.c", false)
	}},
	{21, "A", "backtrace: trim: find the true start where metadata did not fit", func(t *tree) {
		t.function(backtrace, "_lws_alloc_metadata_adjust", "01-adjust.c", false)
		t.function(backtrace, "_lws_alloc_metadata_trim", "01-trim.c", false)
	}},
	{22, "A", "backtrace: dump blobs of any length", func(t *tree) {
		t.function(backtrace, "lws_alloc_metadata_dump_stdout", "01-dump.c", false)
	}},
	{23, "A", "alloc: metadata in a wrapper, once, and for realloc, too", wrapRealloc},
	{24, "A", "api-test-backtrace: read stdin again, and work on 32-bit", mendTool},
	{25, "A", "cmake: backtraces: unwind tables, snips of 0, and what metadata needs", mendCMake},
	{26, "A", "README.lws_backtrace: say what the code does", mendReadme},
	{30, "B", "backtrace: write values of more than 31 bits", func(t *tree) {
		t.function(backtrace, "lws_backtrace_compression_stream", "02-stream.c", false)
	}},
	{31, "A", "backtrace: read and write what is in one byte at once", func(t *tree) {
		t.function(backtrace, "lws_backtrace_compression_stream", "03-stream.c", false)
		t.function(backtrace, "lws_backtrace_compression_destream", "02-destream.c", false)
	}},
	{40, "C", "backtrace: a full stack is a success, of at most 31 levels", func(t *tree) {
		t.function(backtrace, "uwcb", "01-uwcb.c", false)
		t.files[backtrace] = strings.Replace(t.get(backtrace), "}\n\n\nint\nlws_backtrace(", "}\n\nint\nlws_backtrace(", 1)
		t.function(backtrace, "lws_backtrace", "01-backtrace.c", false)
	}},
	{41, "C", "backtrace: SNIP_PRE does not depend on inlining", func(t *tree) {
		t.function(backtrace, "lws_backtrace", "02-backtrace.c", false)
	}},
	{42, "C", "backtrace: align memory with metadata as malloc() does", func(t *tree) {
		t.between(backtrace, "/* what an allocation grows by", "lws_alloc_metadata_gen", "02-gen.c")
	}},
	{43, "C", "backtrace: the first level can be the base of a delta", func(t *tree) {
		t.between(backtrace, "/* a value goes out as", "lws_backtrace_compress_backtrace", "02-compress.c")
	}},
	{50, "C", "base64: refuse surplus padding, and a single character left over", func(t *tree) {
		t.function(decode64, "_lws_b64_decode_string", "01-b64.c", false)
	}},
}

func parse(file string) func(*tree) {
	return func(t *tree) {
		t.between(backtrace, "static int\nlws_backtrace_destream_value", "lws_alloc_metadata_parse", file)
	}
}

func wrapRealloc(t *tree) {
	from, to := t.span(alloc, "_realloc")
	text := t.get(alloc)
	part := &tree{files: map[string]string{alloc: text[from:to]}}
	part.replace(alloc, `^#if defined\(LWS_WITH_ALLOC_METADATA_LWS\)\n[^#]*#endif\n\n?`, "", 5)
	if part.err != nil {
		t.fail("%v", part.err)
		return
	}
	t.files[alloc] = text[:from] + part.files[alloc] + "\n" + strings.TrimRight(t.read("fn/01-realloc-md.c"), "\n") + "\n" + text[to:]
	t.replace(alloc, `^(void \*\(\*_lws_realloc\)\([^)]*\) =) _realloc;\n`,
		"#if defined(LWS_WITH_ALLOC_METADATA_LWS)\n${1}\n\t_realloc_metadata;\n#else\n${1}\n\t_realloc;\n#endif\n", 1)
}

func mendTool(t *tree) {
	t.replace(toolMain, `\(argc == 1\) \|\| `, "", 1)
	t.replace(toolMain, `if \((lws_cmdline_option\([^\n]*\.sw\))\) \{\n(\t+lws_switches)`, "if (${1}) {\n${2}", 1)
	t.replace(toolMain, `struct lws_context \*context;`, "struct lws_context *context = NULL;", 1)
	t.replace(toolMain, `uipt = 0x8000000000000000ull;`, "uipt = (uintptr_t)1 << (8 * sizeof(uipt) - 1);", 1)
	t.replace(toolMain, `for \(n = 64; n; n--\)`, "for (n = (int)(8 * sizeof(uipt)); n; n--)", 1)
	t.replace(toolMain, `\bsan = ([^;]*);`, "san = (uint16_t)(${1});", 1)
	t.drop(toolMain, "\tif (!fdin) {")
	t.replace(toolMain, `^(\tlws_cmdline_option_handle_builtin\([^\n]*\n)(#if defined\(LWS_WITH_NETWORK\)\n)(\tinfo\.port[^\n]*\n)`,
		"${2}${1}${3}#else\n\tif ((p = lws_cmdline_option(argc, argv, switches[LWS_SW_D].sw)))\n\t\tlws_set_log_level(atoi(p), NULL);\n", 1)
}

func mendCMake(t *tree) {
	t.replace("cmake/lws_config.h.in", `#cmakedefine (LWS_COMPRESSED_BACKTRACES_SNIP_)`, "#define ${1}", 2)
	t.replace("CMakeLists.txt", `^(option\(LWS_WITH_ALLOC_METADATA_LWS [^\n]*\n)`,
		"${1}if (LWS_WITH_ALLOC_METADATA_LWS)\n\tset(LWS_WITH_COMPRESSED_BACKTRACES ON)\nendif()\n", 1)
	t.replace("CMakeLists.txt", `^add_subdirectory\(lib\)\n`, `# stacks can only be walked where there are unwind tables, which some
# compilers make on request only
if (LWS_WITH_COMPRESSED_BACKTRACES AND NOT MSVC)
	include(CheckCCompilerFlag)
	CHECK_C_COMPILER_FLAG(-funwind-tables LWS_HAVE_FUNWIND_TABLES)
	if (LWS_HAVE_FUNWIND_TABLES)
		add_compile_options(-funwind-tables)
	endif()
endif()

add_subdirectory(lib)
`, 1)
}

func mendReadme(t *tree) {
	t.replace(readme, "(LWS_WITH_COMPRESSED_BACKTRACES` )on by default", "${1}off by default", 1)
	t.replace(readme, `IF0BmagugNDWgCnkhdAYpQa6wAAV`, "IF0BmUQugNCkgCnkhdAYpQa6wAAV", 2)
	t.replace(readme, `^(### Call stack item domain-specific compression\n)`, `Every field, those of the call stack items included, takes one bit more than
is given for it: the bits of its value, the highest first, and then a bit that
a writer sets to 0 and a reader ignores.  (lws up to 5.0 wrote other values
into it on some platforms.)

A depth of 32 is written as 0, like that of an empty call stack; what follows
decides.  A bit count of 64 is written as 0.

${1}`, 1)
	t.files[readme] = strings.TrimRight(t.get(readme), "\n") + `

## Note for other toolchains

Where the compiler makes unwind tables on request only (gcc for 32-bit Arm
does), lws is built with ` + "`-funwind-tables`" + `.  Build your own sources with it,
too: a backtrace ends at the first function that has none.
`
	t.replace(header, `^ \* 6 or 10 \(64-bit\).*?\*/`, ` * The longest result has 180 bytes on 32-bit and 312 bytes on 64-bit platforms.
 * Typically the compression reduces this very significantly.
 */`, 1)
	t.replace(header, `adjusted_alloc: pointer to adjusted, user allocation start`, "past_len: pointer past the two bytes of length that end the blob", 1)
	t.replace(header, `This api parses and decompresses the blob behind the \\p adjusted_alloc\n \* address into \\p si\.`,
		`This api parses and decompresses the blob that ends at \p past_len into \p si.
 * For an allocation with metadata, that is the address of its lws_dll2_t, which
 * is what the callback of _lws_alloc_metadata_dump() is given, and stands
 * sizeof(lws_dll2_t) before the user allocation start.`, 1)
	t.replace(header, `const uint8_t \*adjusted_alloc\)`, "const uint8_t *past_len)", 1)
}
