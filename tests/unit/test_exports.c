#include "support/tree.h"
#include "survey/exports.h"
#include "sys/root.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void assert_nfs(const char *text, const char *path, const char *expected)
{
	char *line = NULL;
	int r = dbt_exports_match_nfs("E", text, strlen(text), path, &line);

	assert_int_equal(r, expected ? 1 : 0);
	if (expected)
		assert_string_equal(line, expected);
	free(line);
}

static void assert_samba(const char *text, const char *path, const char *expected)
{
	char *line = NULL;
	int r = dbt_exports_match_samba("S", NULL, text, strlen(text), path, &line);

	assert_int_equal(r, expected ? 1 : 0);
	if (expected)
		assert_string_equal(line, expected);
	free(line);
}

static void nfs_above_at_and_below(void **state)
{
	const char *text = "# comment\n\n/mnt/store 10.0.0.0/8(ro) \\\n    node(rw)\n/srv *(ro)\n";

	(void)state;
	assert_nfs(text, "/mnt/store/db/psc.dmnd", "E:3: /mnt/store 10.0.0.0/8(ro)     node(rw)");
	assert_nfs(text, "/mnt/store", "E:3: /mnt/store 10.0.0.0/8(ro)     node(rw)");
	assert_nfs(text, "/mnt", "E:3: /mnt/store 10.0.0.0/8(ro)     node(rw)");
	assert_nfs(text, "/srv/x", "E:5: /srv *(ro)");
	assert_nfs(text, "/mnt/store2/x", NULL);
	assert_nfs(text, "/sr", NULL);
	assert_nfs("#/mnt *(ro)\n", "/mnt/x", NULL);
	assert_nfs("/ *(ro,fsid=0)\n", "/mnt/x", "E:1: / *(ro,fsid=0)");
	assert_nfs("/mnt/store/ *(ro)\n", "/mnt/store/x", "E:1: /mnt/store/ *(ro)");
	assert_nfs("/mnt", "/mnt/x", "E:1: /mnt");
	assert_nfs("", "/mnt/x", NULL);
	assert_nfs("relative *(ro)\n\\\n", "/relative", NULL);
	assert_nfs("/a\\\n/b *\n/c *\n", "/c/x", "E:3: /c *");
}

static void nfs_names_with_blanks(void **state)
{
	(void)state;
	assert_nfs("\"/mnt/my data\" *(ro)\n", "/mnt/my data/x", "E:1: \"/mnt/my data\" *(ro)");
	assert_nfs("/mnt/my\\040data *(ro)\n", "/mnt/my data/x", "E:1: /mnt/my\\040data *(ro)");
	assert_nfs("\"/mnt/my\\011data\" *\n", "/mnt/my\tdata/x", "E:1: \"/mnt/my\\011data\" *");
	assert_nfs("/mnt/my data *(ro)\n", "/mnt/my/x", "E:1: /mnt/my data *(ro)");
	assert_nfs("/mnt/my\\04 *(ro)\n", "/mnt/my\\04/x", "E:1: /mnt/my\\04 *(ro)");
	assert_nfs("\"/mnt/open *(ro)\n", "/mnt/x", NULL);
}

static void samba_shares(void **state)
{
	const char *text = "# c\n[global]\n  workgroup = X\n; path = /no\n[data]\n"
			   "\tcomment = a\n\tPath = /mnt/store\n  read only = yes\n"
			   "[printers]\n path = /var/spool/samba\n printable = yes\n"
			   "[off]\npath = /off\navailable = no\n"
			   "[b l]\n di rectory = \"/srv/my data\"\n";

	(void)state;
	assert_samba(text, "/mnt/store/x", "S:7: [data] path = /mnt/store");
	assert_samba(text, "/srv/my data", "S:16: [b l] path = /srv/my data");
	assert_samba(text, "/var/spool/samba/x", NULL);
	assert_samba(text, "/off/x", NULL);
	assert_samba(text, "/no/x", NULL);
	assert_samba(text, "/home/a/x", NULL);
	assert_samba("[a]\npath = \\\n  /mnt/\\\nx\n", "/mnt/x/f", "S:2: [a] path = /mnt/x");
	assert_samba("path = /mnt\n", "/mnt/x", NULL); /* no section */
	assert_samba("[a\npath = /mnt\n", "/mnt/x", NULL);
	assert_samba("[a]\npath\n[b]\npath=/mnt", "/mnt/x", "S:4: [b] path = /mnt");
}

static void samba_homes_and_variables(void **state)
{
	(void)state;
	assert_samba("[homes]\nbrowseable = no\n", "/home/alice/x.dmnd", "S:1: [homes]");
	assert_samba("[homes]\npath = /data/%S\n", "/home/alice/x.dmnd", NULL);
	assert_samba("[homes]\npath = /data/%S\n", "/data/alice/x", "S:2: [homes] path = /data/%S");
	assert_samba("[p]\npath = /data/u-%U/x\n", "/data/other/y", "S:2: [p] path = /data/u-%U/x");
	assert_samba("[p]\npath = /%U\n", "/mnt/x", "S:2: [p] path = /%U");
}

static void all_files_of_a_machine(void **state)
{
	static const struct {
		const char *file, *text, *expected;
	} cases[] = {
		{ "etc/exports", "/mnt/a *(ro)\n", "/etc/exports:1: /mnt/a *(ro)" },
		{ "etc/exports.d/zfs.exports", "/mnt *(ro)\n",
		  "/etc/exports.d/zfs.exports:1: /mnt *(ro)" },
		{ "etc/exports.d/old.exports.bak", "/mnt *(ro)\n", NULL },
		{ "etc/exports.d/.hidden.exports", "/mnt *(ro)\n", NULL },
		{ "var/lib/nfs/etab", "/mnt/a\t*(ro,sync)\n",
		  "/var/lib/nfs/etab:1: /mnt/a\t*(ro,sync)" },
		{ "etc/samba/smb.conf", "[x]\npath = /mnt\n",
		  "/etc/samba/smb.conf:2: [x] path = /mnt" },
		{ "var/lib/samba/usershares/bob", "#VERSION 2\npath=/mnt/a\ncomment=\n",
		  "/var/lib/samba/usershares/bob:2: [bob] path = /mnt/a" },
		{ "etc/hosts", "/mnt\n", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *dir = tree_new(), *line = NULL;
		struct dbt_root root;
		struct dbt_ctx ctx;

		assert_int_equal(dbt_root_open(&root, dir), 0);
		dbt_ctx_init(&ctx, &root);
		assert_int_equal(dbt_exports_find(&ctx, "/mnt/a/psc.dmnd", &line), 0);
		tree_put(dir, cases[i].file, cases[i].text);
		assert_int_equal(dbt_exports_find(&ctx, "/mnt/a/psc.dmnd", &line),
		                 cases[i].expected ? 1 : 0);
		if (cases[i].expected)
			assert_string_equal(line, cases[i].expected);
		free(line);
		dbt_root_close(&root);
		tree_remove(dir);
		free(dir);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nfs_above_at_and_below),
		cmocka_unit_test(nfs_names_with_blanks),
		cmocka_unit_test(samba_shares),
		cmocka_unit_test(samba_homes_and_variables),
		cmocka_unit_test(all_files_of_a_machine),
	};

	return cmocka_run_group_tests_name("exports", tests, NULL, NULL);
}
