// A program with what makes line tables hard: inlining two deep, a recursive
// function, static functions of one name in two files, a cold path, a header's
// function, and tables of functions.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "prog.h"

struct node {
	struct node *left, *right;
	char key[16];
	int value;
};

static inline int compare(const char *a, const char *b)
{
	int r = strcmp(a, b);
	if (r < 0)
		return -1;
	return r > 0;
}

static inline __attribute__((always_inline)) struct node *make(const char *key, int value)
{
	struct node *n = calloc(1, sizeof *n);
	if (!n)
		die("no memory", value);
	strncpy(n->key, key, sizeof n->key - 1);
	n->value = clamp(value, -100, 100);
	return n;
}

static struct node *insert(struct node *n, const char *key, int value)
{
	if (!n)
		return make(key, value);
	int c = compare(key, n->key);
	if (c < 0)
		n->left = insert(n->left, key, value);
	else if (c > 0)
		n->right = insert(n->right, key, value);
	else
		n->value += clamp(value, 0, 10);
	return n;
}

static int helper(int x) { return x * 3 + clamp(x, 0, 7); }

int sum(const struct node *n)
{
	if (!n)
		return 0;
	return helper(n->value) + sum(n->left) + sum(n->right);
}

void drop(struct node *n)
{
	if (!n)
		return;
	drop(n->left);
	drop(n->right);
	free(n);
}

static int twice(int x) { return other(x) + helper(x); }
static int negate(int x) { return -x; }
int (*const table[])(int) = { helper, twice, negate, other };

__attribute__((section(".text.special"), noinline)) int special(int x)
{
	for (int i = 0; i < x; i++)
		x ^= table[i & 3](i);
	return x;
}

int main(int argc, char **argv)
{
	struct node *root = NULL;
	char key[32];

	for (int i = 0; i < argc * 20; i++) {
		snprintf(key, sizeof key, "%d-%s", i * 7919 % 101, argv[0]);
		root = insert(root, key, i);
	}
	int s = sum(root) + special(argc);
	drop(root);
	printf("%d\n", s);
	return s == 42;
}
