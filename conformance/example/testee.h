/*
 * A testee of BTP/1 in C99, with every operation: a reader and a writer of all
 * lines that SPEC.md describes, written from that document.
 *
 *   testee.c         the protocol: requests in, answers out; faults and memory
 *   testee_ops.c     the operations of the protocol
 *   testee_blob.c    Part I: reads blobs (sections 2 to 6, 12 to 15)
 *   testee_encode.c  Part I: writes blobs (sections 8, 9, 14, 15)
 *   testee_text.c    base64, ~b# lines, records in a text (section 7)
 *   testee_log.c     Part II: headers and recordings (sections 16, 17)
 *   testee_digits.c  Part III: digits, CRCs and code offsets (sections 18, 19)
 *   testee_paths.c   Part III: reads ~p# lines (sections 20 to 23)
 *   testee_write.c   Part III: writes ~p# lines
 *   testee_events.c  Part III: reads and writes ~v# lines (section 25)
 *   testee_names.c   Part III: the paths of names (section 23)
 *   testee_dumps.c   Part III: adds up dumps (section 24)
 *
 * Faults: the first call of reject() counts. After it, readers of fields return
 * 0 and loops end, so that callers look at fault.reason once, where a result
 * would be used.
 */
#ifndef TESTEE_H
#define TESTEE_H

#include <stddef.h>
#include <stdint.h>

/* testee.c */

struct fault {
	const char *reason;	/* NULL while all is well */
	long bit;		/* where the field at fault begins, or -1 */
};
extern struct fault fault;

struct bytes {
	const unsigned char *at;
	size_t len;
};

#define MALFORMED "malformed"	/* reason of a request that is not one of BTP/1: it is skipped */

void reject(const char *reason, long bit);
struct fault take_fault(void);			/* returns the fault, and forgets it */
void *need(size_t size);			/* zeroed memory, freed once the request is answered */
void *grow(void *array, size_t n, size_t each);	/* an array of n, with space for one more */
void put(const char *format, ...);		/* appends to the answer */
struct bytes take_back(void);			/* a copy of the answer, which is empty then */
const char *option(char **words, const char *key);	/* the value of word KEY=VALUE, or NULL */
const char *must(char **words, const char *key);	/* the same; the request is malformed without it */

/* testee_ops.c */

struct request {
	char **words;		/* those behind the ID, and NULL */
	struct bytes data;	/* the first of them, from hexadecimal */
	int word;
	const char *op;
};

struct operation {
	const char *name, *verb;	/* of the request, of the answer */
	size_t words;			/* that it needs behind the ID */
	void (*run)(struct request *);
};
extern const struct operation operations[];	/* the last one has no name */

struct bytes from_hex(const char *hex);

/* testee_blob.c */

enum { MOST_FRAMES = 32, MOST_FIELDS = 6 };

struct bits {			/* bits from pos up to end can be read */
	const unsigned char *at;
	long pos, end;
};

struct stack {
	int depth;			/* of a stack to be written it may be over 32 */
	uint64_t pcs[MOST_FRAMES], size;
	uint64_t values[MOST_FRAMES];	/* of each frame's own field, */
	int counts[MOST_FRAMES];	/* and its count; */
	int bases[MOST_FRAMES];		/* the frame it is a difference to, or -1 */
	int size_count;
	uint64_t user[MOST_FIELDS + 1];	/* user fields by tag, */
	int has[MOST_FIELDS + 1];	/* and which of them there are */
};

void decode(struct bytes blob, int word, int event, struct stack *s, struct bits *rest);
void read_fields(struct bytes blob, int word, int event, struct stack *s);
struct bytes at_end(struct bytes memory);
long decode_bare(struct bytes data, int word, struct stack *s);	/* returns the bits it takes */
int salvage(struct bytes data, int word, struct stack *s, int *has_size);	/* returns the depth announced */
void put_marks(const struct stack *s);
int event_is_complete(const struct stack *s);

/* testee_encode.c */

struct blob {
	unsigned char at[512];	/* the longest has 312 bytes, and 58 of user fields */
	int pos;		/* bits written */
};

void encode(const struct stack *s, const char *machine, const char *search, struct blob *b);
void encode_event(const struct stack *s, const char *machine, const char *search, struct blob *b);
void encode_bare(const struct stack *s, const char *machine, const char *search, struct blob *b);

/* testee_text.c */

extern const char alphabet[];	/* the standard one of base64, which has the digits of Part III, too */

struct place {			/* of a record, header or line in a text */
	char kind;		/* letter of its lead-in, 0 if there is none */
	size_t at, len;
};

int digit_value(int c);		/* in the alphabet, or -1 */
int to_number(struct bytes digits, unsigned base, uint64_t *v);	/* 0 unless digits of a number below 2^64 */
int is_space(int c);
int lead_in(struct bytes text, size_t at);	/* the letter of the lead-in there, or 0 */
int begins(struct bytes text, const char *with);
struct bytes part(struct bytes text, size_t at, size_t len);
struct bytes read_line(struct bytes text, const char *lead, int lenient);
void put_base64(struct bytes data);
void read_decoded(struct bytes text, struct stack *s);
struct place next_place(struct bytes text, size_t from);

/* testee_log.c */

struct key {
	struct bytes name, value;	/* the value without escapes */
};

struct header {
	struct bytes verb;
	int numbered;
	uint64_t number;
	struct key *keys;
	size_t count;
};

void read_header(struct bytes text, struct header *h);
int is_verb(const struct header *h, const char *verb);
const struct bytes *key_of(const struct header *h, const char *name);	/* the first of this name, or NULL */
int key_number(const struct header *h, const char *name, uint64_t *v);	/* 0 if the header lacks it */
void put_header(const struct header *h, const char *no_number);
void put_log(struct bytes text);
void put_stack(const struct stack *s, char between);

/* testee_digits.c */

struct digits {			/* values of digits, of which pos to end can be read */
	unsigned char *at;
	size_t pos, end;
};

struct line {			/* a line of digits that is written */
	char *at;
	size_t len;
};

uint64_t fixed(struct digits *d, int n);
uint64_t number(struct digits *d);
uint64_t read_name(struct digits *d);
uint64_t unfold(uint64_t v);	/* differences are modulo 2^64 */
uint64_t fold(uint64_t d);
struct digits open_line(struct bytes text, const char *lead, size_t least, int crc_digits);
unsigned read_unit(struct digits *d, unsigned flags);
void put_fixed(struct line *l, uint64_t v, int n);
void put_number(struct line *l, uint64_t v);
uint32_t crc16(const char *text, size_t len);
uint32_t crc32(const char *text, size_t len);
void put_offsets(char **words);
void put_addresses(char **words);

/* testee_paths.c */

enum { DEEPEST = 1024 };

/*
 * A path is its innermost frame and the path outside of it. Entries of a line
 * share their outer frames: no frame is copied.
 */
struct path {
	const struct path *outer;	/* NULL if this is the beginning, which has no frame */
	const struct path *beginning;
	int base;			/* of the beginning: 0, 1, or 2 with a name */
	int escaped;			/* x is an address, else a code offset */
	uint64_t x;
	int depth;			/* frames, those of the name not counted */
	uint32_t name;			/* of the whole path (BT-NAME-1) */
	struct path *next;		/* of the same slot of a table, in testee_names.c */
};

struct block {
	uint64_t address, size;
};

struct entry {
	const struct path *path;
	int definition;
	uint64_t live, bytes, allocs, ever, peak;
	struct block *blocks;		/* with flag 1 */
	size_t count;
};

struct paths {				/* a ~p# line */
	unsigned flags, dump, sequence, unit;
	struct entry *entries;
	size_t count;
};

struct path *begin_path(int base, uint32_t name);
uint32_t name_with(uint32_t name, int escaped, uint64_t x);
struct path *extend(const struct path *outer, int escaped, uint64_t x);
uint64_t reference(const struct path *p);	/* what the next step counts from (BT-ENTRY-2) */
void list_frames(const struct path *p, const struct path *list[DEEPEST]);	/* outermost first */
struct path *parse_path(const char *word);
void put_path(const struct path *p);
void read_paths(struct bytes text, struct paths *line);
void put_paths(const struct paths *line);

/* testee_names.c */

enum { SLOTS = 4096 };

/*
 * The paths that lines told since the boot that forgot all names. In slots is
 * every path that was told, and its outer parts, each once: two are the same if
 * their pointers are. Paths of one name are in one slot. (BT-NAME-2)
 */
struct names {
	struct path *slots[SLOTS];
	const struct path **told;
	size_t count;
};

struct names *new_names(void);
void tell(struct names *t, const struct path *p);
void learn(struct names *t);		/* once all paths are told */
const struct path *known(const struct names *t, uint32_t name);	/* the only path of this name, or NULL */
const struct path *whole(struct names *t, const struct path *p);	/* with the frames of its name, or NULL */
const struct path *with_frames(const struct names *t, const struct path *p);	/* with more frames of an unknown name */
int keeps_names(const struct header *before, const struct header *boot);

/* testee_write.c, testee_events.c, testee_dumps.c */

void write_paths(char **words);
void put_events(struct bytes text);
void write_events(char **words);
void put_dumps(struct bytes text);

#endif
