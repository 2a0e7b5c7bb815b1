#include "survey/anonymous.h"

#include "base/vec.h"
#include "survey/stack.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void list_release(struct dbt_name_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->items[i]);
	free(list->items);
}

void dbt_anonymous_release(struct dbt_anonymous *a)
{
	list_release(&a->users);
	list_release(&a->servers);
	list_release(&a->subsystems);
	free(a->host);
	*a = (struct dbt_anonymous){ 0 };
}

/* The number of a name, from 1; a new one is kept. 0: out of memory. */
static size_t number_of(struct dbt_name_list *list, const char *name, size_t len)
{
	char **slot;

	for (size_t i = 0; i < list->n; i++)
		if (strlen(list->items[i]) == len && memcmp(list->items[i], name, len) == 0)
			return i + 1;
	slot = dbt_vec_push(list);
	if (!slot)
		return 0;
	*slot = strndup(name, len);
	return *slot ? list->n : 0;
}

/* Directories whose entries are named after users. */
static const char *const user_dirs[] = { "/home/", "/run/media/", "/media/", "/run/user/",
	                                 "/Users/" };

/* Length of the user directory that text begins with, 0 when with none. */
static size_t user_dir_at(const char *text)
{
	for (size_t i = 0; i < sizeof(user_dirs) / sizeof(user_dirs[0]); i++)
		if (strncmp(text, user_dirs[i], strlen(user_dirs[i])) == 0)
			return strlen(user_dirs[i]);
	return 0;
}

static bool host_at(const struct dbt_anonymous *a, const char *text, char before)
{
	size_t len = a->host ? strlen(a->host) : 0;

	return len > 0 && strncmp(text, a->host, len) == 0 && !isalnum((unsigned char)before) &&
	       !isalnum((unsigned char)text[len]);
}

static int add_text(struct dbt_anonymous *a, const char *text, size_t len, struct dbt_buf *out)
{
	const char *end = text + len;
	char before = ' ';
	size_t n, number;
	int r = 0;

	while (r == 0 && text < end) {
		n = user_dir_at(text);
		if (n > 0 && text + n < end) {
			size_t name = strcspn(text + n, "/ ,:\n");

			r = dbt_buf_add(out, text, n);
			number = name ? number_of(&a->users, text + n, name) : 0;
			if (r == 0 && name)
				r = number ? dbt_buf_addf(out, "user%zu", number) : -ENOMEM;
			text += n + name;
			before = 'x';
			continue;
		}
		if (host_at(a, text, before)) {
			r = dbt_buf_adds(out, "host");
			text += strlen(a->host);
			before = 'x';
			continue;
		}
		before = *text;
		r = dbt_buf_addc(out, *text++);
	}
	return r;
}

int dbt_anonymous_text(struct dbt_anonymous *a, const char *text, struct dbt_buf *out)
{
	return add_text(a, text, strlen(text), out);
}

/* "server1:/export1" or "//server1/share": whoever the server is, the shape stays. */
static int add_source(struct dbt_anonymous *a, const char *source, size_t len, struct dbt_buf *out)
{
	size_t slashes = strspn(source, "/"), number = number_of(&a->servers, source, len);

	if (number == 0)
		return -ENOMEM;
	if (slashes == 2 && len > 2)
		return dbt_buf_addf(out, "//server%zu/share", number);
	if (memchr(source, ':', len))
		return dbt_buf_addf(out, "server%zu:/export", number);
	return dbt_buf_addf(out, "source%zu", number);
}

static bool is_remote(const char *fstype, size_t len)
{
	char name[64];

	if (len >= sizeof(name))
		return true;
	memcpy(name, fstype, len);
	name[len] = '\0';
	switch (dbt_fs_kind_of(name)) {
	case DBT_FS_NETWORK:
	case DBT_FS_USERSPACE:
		return true;
	case DBT_FS_BLOCK:
	case DBT_FS_CLUSTER:
	case DBT_FS_RAM:
	case DBT_FS_OVERLAY:
	case DBT_FS_OPAQUE:
	case DBT_FS_PSEUDO:
	default:
		return false;
	}
}

/* proc(5): after " - " come the type, the source and the superblock's options. */
static int add_mount_line(struct dbt_anonymous *a, const char *line, size_t len,
                          struct dbt_buf *out)
{
	const char *dash = memmem(line, len, " - ", 3), *type, *source;
	size_t type_len, source_len;
	int r;

	if (!dash)
		return 0; /* garbled: nobody knows what it may hold */
	type = dash + 3;
	type_len = strcspn(type, " \n");
	source = type + type_len + (type[type_len] == ' ');
	source_len = strcspn(source, " \n");
	if (!is_remote(type, type_len))
		return add_text(a, line, len, out);
	r = add_text(a, line, (size_t)(source - line), out);
	if (r == 0)
		r = add_source(a, source, source_len, out);
	return r == 0 ? dbt_buf_adds(out, " rw") : r;
}

int dbt_anonymous_mountinfo(struct dbt_anonymous *a, const char *text, struct dbt_buf *out)
{
	int r = 0;

	while (r == 0 && *text) {
		size_t len = strcspn(text, "\n"), before = out->len;

		r = add_mount_line(a, text, len, out);
		if (r == 0 && out->len > before)
			r = dbt_buf_addc(out, '\n');
		text += len + (text[len] == '\n');
	}
	return r;
}

int dbt_anonymous_dm_uuid(const char *text, struct dbt_buf *out)
{
	const char *unique = strpbrk(text, "-");
	int r;

	if (!unique)
		return dbt_buf_adds(out, text);
	/* "CRYPT-LUKS2-<id>-name", "LVM-<id>", "mpath-<wwid>", "part1-mpath-<wwid>" */
	if (strncmp(text, "CRYPT-", 6) == 0 && strchr(text + 6, '-'))
		unique = strchr(text + 6, '-');
	if (strncmp(text, "part", 4) == 0 && strchr(unique + 1, '-'))
		unique = strchr(unique + 1, '-');
	r = dbt_buf_add(out, text, (size_t)(unique - text) + 1);
	return r == 0 ? dbt_buf_adds(out, "00000000000000000000000000000000") : r;
}

int dbt_anonymous_subsystem(struct dbt_anonymous *a, const char *text, struct dbt_buf *out)
{
	size_t len = strlen(text), number = number_of(&a->subsystems, text, len);

	return number ? dbt_buf_addf(out, "subsystem%zu", number) : -ENOMEM;
}
