/* sqlite3.c: runs statements on a database in memory. There is no operating system
 * below it (SQLITE_OS_OTHER). */
#include <stdint.h>
#include <string.h>

#include "real.h"
#include "sqlite3.h"

static int no_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out)
{
	(void)v, (void)name, (void)flags, (void)out;
	f->pMethods = NULL;
	return SQLITE_CANTOPEN;
}

static int no_access(sqlite3_vfs *v, const char *name, int flags, int *out)
{
	(void)v, (void)name, (void)flags;
	*out = 0;
	return SQLITE_OK;
}

static int full(sqlite3_vfs *v, const char *name, int n, char *out)
{
	(void)v;
	strncpy(out, name, (size_t)n);
	return SQLITE_OK;
}

static int bytes(sqlite3_vfs *v, int n, char *out)
{
	(void)v;
	memset(out, 7, (size_t)n);
	return n;
}

static int now(sqlite3_vfs *v, double *t)
{
	(void)v;
	*t = 2460000.5;
	return SQLITE_OK;
}

static sqlite3_vfs vfs = {
	.iVersion = 1, .szOsFile = sizeof(sqlite3_file), .mxPathname = 64, .zName = "none",
	.xOpen = no_open, .xAccess = no_access, .xFullPathname = full, .xRandomness = bytes, .xCurrentTime = now,
};

int sqlite3_os_init(void)
{
	return sqlite3_vfs_register(&vfs, 1);
}

int sqlite3_os_end(void)
{
	return SQLITE_OK;
}

static const char *const statements[] = {
	"CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT COLLATE NOCASE, c REAL, d BLOB); CREATE TABLE u(x INT REFERENCES t(a) ON DELETE CASCADE, y, UNIQUE(x, y));",
	"CREATE INDEX i ON t(b, c); CREATE INDEX j ON u(y) WHERE y > 3; CREATE VIEW v AS SELECT a, b, x FROM t LEFT JOIN u ON a = x;",
	"CREATE TRIGGER r AFTER INSERT ON t WHEN new.a % 5 = 0 BEGIN INSERT OR IGNORE INTO u VALUES(new.a, new.a * 2); UPDATE t SET c = c + 1 WHERE a = new.a; END;",
	"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 90) INSERT INTO t SELECT i, printf('name%03d', i), i / 7.0, zeroblob(i * 20) FROM n;",
	"SELECT b, count(*), sum(c), group_concat(b, '-') FROM t GROUP BY a % 7 HAVING count(*) > 1 ORDER BY 3 DESC, 1 LIMIT 5;",
	"SELECT a, row_number() OVER (PARTITION BY a % 3 ORDER BY c DESC), avg(c) OVER (ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM t;",
	"SELECT * FROM v WHERE b LIKE 'name0%' AND a IN (SELECT x FROM u UNION SELECT 3 EXCEPT SELECT 10) ORDER BY b DESC;",
	"SELECT DISTINCT substr(upper(b), 2, 3), replace(b, 'n', 'm'), date('now', '+1 day'), strftime('%Y', 'now'), hex(d), round(c, 2), typeof(d), instr(b, 'e') FROM t WHERE c BETWEEN 2 AND 9;",
	"SELECT json_extract('{\"a\":[1,2,{\"b\":3}]}', '$.a[2].b'), json_group_array(a) FROM t; SELECT value FROM json_each('[1,[2],{\"k\":null}]');",
	"UPDATE t SET b = b || '!', d = randomblob(900) WHERE a % 2; DELETE FROM t WHERE a % 11 = 0; PRAGMA foreign_keys = 1; DELETE FROM t WHERE a = 5;",
	"BEGIN; SAVEPOINT s; INSERT INTO u VALUES(1, 2), (2, 3), (3, 4); ROLLBACK TO s; RELEASE s; INSERT INTO t(b) VALUES('x') RETURNING a; COMMIT;",
	"ALTER TABLE t ADD COLUMN e DEFAULT 5; ALTER TABLE u RENAME COLUMN y TO z; ANALYZE; REINDEX; PRAGMA integrity_check; EXPLAIN QUERY PLAN SELECT * FROM v;",
	"INSERT INTO t(a, b) VALUES(1, 'one') ON CONFLICT(a) DO UPDATE SET b = excluded.b; CREATE TABLE w(k PRIMARY KEY, l) WITHOUT ROWID; INSERT INTO w SELECT b, a FROM t;",
	"SELECT (SELECT max(c) FROM t AS s WHERE s.a < t.a), CASE WHEN a > 4 THEN 'x' ELSE NULL END, EXISTS(SELECT 1 FROM w WHERE l = t.a) FROM t JOIN u ON t.a = u.x JOIN w ON w.l = t.a;",
	"SELECT broken FROM; ", "SELECT nothing FROM t;", "INSERT INTO u VALUES(999, 1);", "VACUUM; DROP TABLE u; DROP VIEW v;",
};

static int row(void *arg, int n, char **values, char **names)
{
	(void)names;
	for (; n > 0; n--)
		*(size_t *)arg += values[n - 1] ? strlen(values[n - 1]) : 0;
	return 0;
}

static int order(void *arg, int n, const void *a, int m, const void *b)
{
	int d = memcmp(a, b, (size_t)(n < m ? n : m));

	(void)arg;
	return d ? -d : m - n;
}

static void twice(sqlite3_context *c, int n, sqlite3_value **v)
{
	char *s = sqlite3_mprintf("%d%s", n, sqlite3_value_text(v[0]));

	sqlite3_result_text(c, s, -1, sqlite3_free);
}

void drive(void)
{
	sqlite3 *db;
	size_t total = 0, i;

	if (sqlite3_open(":memory:", &db) != SQLITE_OK)
		return;
	sqlite3_create_collation(db, "back", SQLITE_UTF8, NULL, order);
	sqlite3_create_function(db, "twice", 1, SQLITE_UTF8, NULL, twice, NULL, NULL);
	for (i = 0; i < sizeof statements / sizeof *statements; i++) {
		char *message = NULL;

		sqlite3_exec(db, statements[i], row, &total, &message);
		sqlite3_free(message);
		if (i == 4)
			sqlite3_exec(db, "SELECT twice(b) FROM t ORDER BY b COLLATE back", row, &total, NULL);
	}
	sqlite3_close(db);
}
