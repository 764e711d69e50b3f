/* Errata of the encoder and of the text forms. */
#include "errata.h"

#include <string.h>

enum { CANARY = 0xa5, ROOM = 64 };	/* ROOM: watched bytes after a buffer */

/* Returns the number of bytes from index n to the last changed one. */
static int
overrun(const uint8_t *buf, size_t n, size_t cap)
{
	int past = 0;
	size_t i;

	for (i = n; i < cap; i++)
		if (buf[i] != CANARY)
			past = (int)(i - n) + 1;
	return past;
}

static int
too_small(void)
{
	lws_backtrace_info_t si = { .st = { 0x406651, 0x70406852, 0x406c1b, 0x70406294, 0x406660,
					    0x70406299, 0x406677, 0x704062aa }, .sp = 8 };
	uint8_t buf[MAX_BLOB + ROOM];
	lws_backtrace_comp_t c;
	size_t n, whole;
	int hit = 0, sizes = 0, worst = 0, past;

	lws_backtrace_compression_stream_init(&c, buf, MAX_BLOB);
	lws_backtrace_compress_backtrace(&si, &c);
	whole = (c.pos + 7) / 8;
	for (n = 1; n < whole; n++) {
		memset(buf, CANARY, sizeof(buf));
		lws_backtrace_compression_stream_init(&c, buf, n);
		lws_backtrace_compress_backtrace(&si, &c);
		past = overrun(buf, n, sizeof(buf));
		sizes++;
		hit += past > 0;
		if (past > worst)
			worst = past;
	}
	did("8 addresses that take %u bytes were compressed into buffers of 1 to %u bytes.",
	    (unsigned int)whole, (unsigned int)whole - 1);
	expected("failure is returned, and nothing beyond the buffer is written: "
		 "comp_len is \"the number of bytes available at comp\".");
	saw("for %d of the %d buffers bytes past the end were overwritten, at most %d: the fields "
	    "before a value are written without a look at what the call returned.",
	    hit, sizes, worst);
	return hit > 0;
}

static int
frame_0(void)
{
	static const struct stack s = {
		"", 16, { 0x40001000, 0x70000000, 0x40001010 }, 3
	};
	struct maker m = { { 0 }, 0 };
	uint8_t blob[MAX_BLOB];
	static struct naive n;
	struct parsed p;
	size_t len = lib_encode(blob, &s), best;
	char text[256];
	int f, literals = 0;

	naive_read(&n, blob, len, WORD);
	for (f = 0; f < n.fields; f++)
		literals += n.field[f].kind == NAIVE_LITERAL;

	make_field(&m, 3, 5);
	make_literal(&m, 0x40001000, 31);
	make_literal(&m, 0x70000000, 31);
	make_field(&m, 1, 1);
	make_field(&m, 1, 3);	/* two back: frame 0 */
	make_field(&m, 0, 1);
	make_field(&m, 5, 6);
	make_field(&m, 0x10, 5);
	make_field(&m, 5, 6);
	make_field(&m, 16, 5);
	best = make_end(&m);
	lib_parse(&p, m.bytes, best);

	did("0x40001000 0x70000000 0x40001010 was encoded; the third address is 16 after frame 0.");
	expected("a delta of 5 bits from frame 0, as the README says of \"a previous Call stack "
		 "item\"; written so by hand it is %u bytes, and the library reads it: %s.",
		 (unsigned int)best, parsed_text(&p, text, sizeof(text)));
	saw("%d literals in %u bytes: the index of the frame found is tested for truth, "
	    "so that frame 0 counts as none.", literals, (unsigned int)len);
	return literals == 3 && !p.rc && p.pcs[2] == 0x40001010 && best < len;
}

static int
low_31_bits(void)
{
	static const struct stack s = { "", 0x1d60, { 0x55d412345678 }, 1 };
	uint8_t blob[MAX_BLOB];
	struct parsed p;
	char text[256];
	size_t len;

	if (WORD == 32)
		return not_here("words have 32 bits on this machine");
	len = lib_encode(blob, &s);
	lib_parse(&p, blob, len);
	did("the address 0x55d412345678 was encoded and decoded again.");
	expected("the same address: \"the significant bits of the literal\".");
	saw("%s: bits are picked with `1 << n`, an int, so that on this machine those from 31 up "
	    "are not the value's.", parsed_text(&p, text, sizeof(text)));
	return !p.rc && p.depth == 1 && p.pcs[0] != s.pcs[0] &&
	       p.pcs[0] % 0x80000000u == s.pcs[0] % 0x80000000u;
}

static int
depth_32(void)
{
	uint8_t blob[MAX_BLOB];
	static struct naive n;
	struct stack s = { "", 0x1d60, { 0 }, 32 };
	struct parsed p;
	char text[256];
	size_t len;
	int i;

	for (i = 0; i < 32; i++)
		s.pcs[i] = 0x406000 + (uint64_t)i * 16;
	len = lib_encode(blob, &s);
	naive_read(&n, blob, len, WORD);
	lib_parse(&p, blob, len);
	did("32 addresses were encoded, as lws_backtrace() gives them at SNIP_POST 0.");
	expected("32 addresses when it is decoded.");
	saw("the 5 bits of the depth hold %d; the library reads: %s.", (int)n.field[0].value,
	    parsed_text(&p, text, sizeof(text)));
	return n.field[0].value == 0 && (p.rc || p.depth != 32);
}

static int
advice(void)
{
	const unsigned int advised = 16 * (WORD == 64 ? 10 : 6);
	struct stack s = { "", 0x1d60, { 0 }, 31 };
	uint8_t blob[MAX_BLOB];
	size_t len;
	int i;

	/* far from each other, as in different modules */
	for (i = 0; i < 31; i++)
		s.pcs[i] = WORD == 64 ? 0x7f0000000000 + (uint64_t)i * 0x123456789a :
					(0x80000000 + (uint64_t)i * 0x12345679) % 0x100000000;
	len = lib_encode(blob, &s);
	did("31 addresses far from one another were encoded.");
	expected("at most %u bytes: the header says that 6 bytes an address, or 10 with 64 bits, "
		 "\"(currently 16) should always be enough\".", advised);
	saw("%u bytes: up to 32 addresses are taken, not 16.", (unsigned int)len);
	return len > advised;
}

static int
base64_padding(void)
{
	static const struct {
		const char *text;
		int good;	/* number of bytes encoded, -1 if it is not base64 */
	} cases[] = {
		{ "QUI=", 2 }, { "QUI", 2 }, { "QUI==", -1 }, { "QUI===", -1 },
		{ "QUJD=", -1 }, { "Q", -1 }, { "QQ=", -1 }, { "QR==", -1 },
	};
	char out[32], list[256] = "";
	size_t n;
	int wrong = 0, lost = 0;

	for (n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		int got = lws_b64_decode_string_len(cases[n].text, (int)strlen(cases[n].text), out,
						    (int)sizeof(out));

		if (got == cases[n].good)
			continue;
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s\"%s\" as %d bytes",
			 list[0] ? ", " : "", cases[n].text, got);
		wrong += got >= 0;
		lost += got == 1 && !strncmp(cases[n].text, "QUI", 3);
	}
	did("lws_b64_decode_string_len() was given texts with wrong padding.");
	expected("-1, as for other text that is no base64.");
	saw("it read %s%s.", list[0] ? list : "none of them",
	    lost ? "; of \"QUI==\" it drops the second byte without a word" : "");
	return wrong > 0;
}

static int
nominal_width(void)
{
	static const char line[] = "IF0BmUQugNCkgCnkhdAYpQa6wAAV";
	static struct naive full, nominal;
	uint8_t blob[64];
	int len = naive_base64(blob, sizeof(blob), line), rc;

	rc = naive_read_nominal(&nominal, blob, (size_t)len, WORD);
	naive_read(&full, blob, (size_t)len, WORD);
	did("the README's second example, ~m#%s, was read with fields of the widths that the "
	    "README's tables name.", line);
	expected("size 7520, 0x406651 0x406852 0x406c1b 0x406294.");
	if (rc)
		saw("rejected as %s at bit %u of %u. With one bit more for each field it is size "
		    "%llu, 0x%llx ...", nominal.reason, (unsigned int)nominal.bit,
		    (unsigned int)(len - 2) * 8, (unsigned long long)full.size,
		    (unsigned long long)full.pcs[0]);
	else
		saw("size %llu, %d frames, the first 0x%llx.", (unsigned long long)nominal.size,
		    nominal.depth, (unsigned long long)nominal.pcs[0]);
	return !full.reason && full.size == 7520 &&
	       (rc || nominal.size != 7520 || nominal.pcs[0] != 0x406651);
}

static int
readme_first(void)
{
	static const struct stack s = {
		"", 7520, { 0x406651, 0x406852, 0x406c1b, 0x406294 }, 4
	};
	static const char readme[] = "~m#IF0BmagugNDWgCnkhdAYpQa6wAAV";
	uint8_t blob[MAX_BLOB], given[64];
	static struct naive n;
	char line[MAX_LINE];
	size_t len = lib_encode(blob, &s);
	int got = naive_base64(given, sizeof(given), readme + 3);

	lib_line(line, blob, len);
	naive_read(&n, given, (size_t)got, WORD);
	did("the README's example addresses were encoded.");
	expected("%s, which stands beside them: \"both examples are complete representations of "
		 "the same\" backtrace.", readme);
	saw("%s. The README's string says %s0x%llx 0x%llx 0x%llx 0x%llx.", line,
	    n.reason ? "nothing: " : "", (unsigned long long)n.pcs[0],
	    (unsigned long long)n.pcs[1], (unsigned long long)n.pcs[2],
	    (unsigned long long)n.pcs[3]);
	return strcmp(line, readme) && !n.reason && n.pcs[0] != s.pcs[0];
}

const struct erratum errata_write[] = {
	{ 1, "a byte past an output buffer that is too small is overwritten", too_small },
	{ 7, "the README's first example is not what its addresses encode to", readme_first },
	{ 11, "depth 32 is written as 0 and not read as 32", depth_32 },
	{ 12, "frame 0 is never the base of a delta", frame_0 },
	{ 13, "of an address over 32 bits only the low 31 bits survive", low_31_bits },
	{ 17, "the README's field widths are one bit short: nothing reads with them",
	  nominal_width },
	{ 21, "the buffer size that the header advises is too small", advice },
	{ 22, "the base64 reader takes wrong padding, and drops a byte for some", base64_padding },
	{ 0, NULL, NULL }
};
