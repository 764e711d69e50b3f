/*
 * Tests a decoder with the vectors as C arrays, without BTP/1 and without a parser. Here it is that of device/; put your
 * own in its place.
 *
 *     btconform list --c > vectors.h
 *     cc -I. -Idevice/amalgamation conformance/example/vectors.c device/amalgamation/lwsbt.c
 */
#include <stdio.h>
#include <string.h>

#include "lwsbt.h"
#include "vectors.h"

/* right reports whether the decoder answers as the vector demands. */
static int right(const struct lwsbt_vector *v)
{
	struct lwsbt_stack s;
	size_t n;

	if (lwsbt_decode(&s, v->in.data, v->in.size, v->word) != LWSBT_OK)
		return v->reason != NULL;
	if (v->reason || s.size != v->size || s.depth != v->depth)
		return 0;
	for (n = 0; n < v->depth; n++)
		if (s.pc[n] != v->pcs[n])
			return 0;
	return 1;
}

int main(void)
{
	size_t i, asked = 0, failed = 0;

	for (i = 0; i < sizeof lwsbt_vectors / sizeof lwsbt_vectors[0]; i++) {
		if (strcmp(lwsbt_vectors[i].op, "decode"))
			continue;
		asked++;
		if (!right(&lwsbt_vectors[i])) {
			printf("FAIL %s: %s\n", lwsbt_vectors[i].id, lwsbt_vectors[i].why);
			failed++;
		}
	}
	printf("%zu of %zu vectors failed\n", failed, asked);
	return failed > 0;
}
