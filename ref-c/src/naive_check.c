/* Tests the naive reader on known blobs, without libwebsockets. */
#include "naive.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *base64;
	int word;
	const char *want;
} cases[] = {
	{ "README's second example", "IF0BmUQugNCkgCnkhdAYpQa6wAAV", 64,
	  "ok size=7520 pcs=406651,406852,406c1b,406294" },
	{ "the same, spill bits by clang", "JF0BmUQugNCkhSnkhdAYpQa6wAAV", 64,
	  "ok size=7520 pcs=406651,406852,406c1b,406294" },
	{ "README's first example", "IF0BmagugNDWgCnkhdAYpQa6wAAV", 64,
	  "ok size=7520 pcs=40666a,40686b,406c34,406294" },
	{ "empty stack, size 0", "ABAABA==", 64, "ok size=0 pcs=-" },
	{ "no bytes", "", 64, "reject short" },
	{ "one byte", "Ag==", 64, "reject short" },
	{ "length 0", "AAA=", 64, "reject empty" },
	{ "length 1", "AAE=", 64, "reject length" },
	{ "length alone", "AAI=", 64, "reject truncated" },
	{ "length one too many", "ABAABQ==", 64, "reject length" },
	/* depth 1, kind 1 */
	{ "first frame a delta", "CgAABA==", 64, "reject delta-first" },
	/* depth 1, kind 0, count 33 */
	{ "literal of 33 bits, word 32", "CIQAAAU=", 32, "reject count" },
	{ "literal of 33 bits, word 64", "CIQAAAU=", 64, "reject truncated" },
};

static void
print(char *out, size_t cap, const struct naive *n)
{
	size_t at;
	int i;

	if (n->reason) {
		snprintf(out, cap, "reject %s", n->reason);
		return;
	}
	at = (size_t)snprintf(out, cap, "ok size=%llu pcs=%s", (unsigned long long)n->size,
			      n->depth ? "" : "-");
	for (i = 0; i < n->depth && at < cap; i++)
		at += (size_t)snprintf(out + at, cap - at, "%s%llx", i ? "," : "",
				       (unsigned long long)n->pcs[i]);
}

int
main(void)
{
	static struct naive n;
	char got[1024];
	uint8_t blob[64];
	size_t i, k;
	int failed = 0, len;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		len = naive_base64(blob, sizeof(blob), cases[i].base64);
		if (len < 0) {
			printf("%s: bad base64\n", cases[i].name);
			failed++;
			continue;
		}
		naive_read(&n, blob, (size_t)len, cases[i].word);
		print(got, sizeof(got), &n);
		if (strcmp(got, cases[i].want)) {
			printf("%s: got %s, want %s\n", cases[i].name, got, cases[i].want);
			failed++;
		}
	}

	/* Every truncation of a blob, with a corrected length, is rejected. */
	len = naive_base64(blob, sizeof(blob), cases[0].base64);
	for (k = 2; k < (size_t)len; k++) {
		uint8_t cut[64];

		memcpy(cut, blob, k);
		cut[k - 2] = 0;
		cut[k - 1] = (uint8_t)k;
		if (!naive_read(&n, cut, k, 64)) {
			printf("cut to %u bytes: read\n", (unsigned int)k);
			failed++;
		}
	}
	/* Without spill bits, as in the README of lws, it reads differently. */
	if (!naive_read_nominal(&n, blob, (size_t)len, 64) && n.size == 7520) {
		printf("without spill bits: read all the same\n");
		failed++;
	}
	printf("naive reader: %s\n", failed ? "FAILED" : "ok");
	return failed != 0;
}
