#include "flow/unpack_entries.h"

#include "base/buf.h"
#include "base/vec.h"
#include "move/below.h"

#include <errno.h>
#include <limits.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* Leaves room for the directory that it goes to. */
enum { MOST_PATH_BYTES = 2048 };

void dbt_unpack_entries_init(struct dbt_unpack_entries *e)
{
	*e = (struct dbt_unpack_entries){ 0 };
	(void)pthread_mutex_init(&e->mutex, NULL);
}

static void keep_node(void *node)
{
	(void)node;
}

void dbt_unpack_entries_release(struct dbt_unpack_entries *e)
{
	tdestroy(e->tree, keep_node);
	for (size_t i = 0; i < e->n; i++) {
		free(e->items[i]->path);
		free(e->items[i]->link);
		free(e->items[i]);
	}
	free(e->items);
	free(e->twins.items);
	(void)pthread_mutex_destroy(&e->mutex);
	*e = (struct dbt_unpack_entries){ 0 };
}

static int by_path(const void *a, const void *b)
{
	const struct dbt_unpack_entry *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static struct dbt_unpack_entry *find(const struct dbt_unpack_entries *e, const char *path,
                                     size_t len)
{
	char key[MOST_PATH_BYTES + 1];
	struct dbt_unpack_entry want = { .path = key };
	void *const *node;

	if (len > MOST_PATH_BYTES)
		return NULL;
	memcpy(key, path, len);
	key[len] = '\0';
	node = tfind(&want, &e->tree, by_path);
	return node ? *node : NULL;
}

struct dbt_unpack_entry *dbt_unpack_find(const struct dbt_unpack_entries *e, const char *path)
{
	return find(e, path, strlen(path));
}

static struct dbt_unpack_entry *add(struct dbt_unpack_entries *e, const char *path, size_t len,
                                    enum dbt_entry_type type)
{
	struct dbt_unpack_entry **item = dbt_vec_push(e),
				*entry = item ? calloc(1, sizeof(*entry)) : NULL;

	if (!entry) {
		e->n -= item != NULL;
		return NULL;
	}
	*item = entry;
	entry->type = type;
	entry->path = strndup(path, len);
	if (!entry->path || !tsearch(entry, &e->tree, by_path)) {
		free(entry->path);
		free(entry);
		e->n--;
		return NULL;
	}
	return entry;
}

/* ---- names ---- */

static bool has_controls(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return true;
	return false;
}

/* Names that dbtier gives, or looks for. */
static bool is_reserved(const char *name, size_t len)
{
	static const char kept[] = ".dbtier-original";
	const size_t kept_len = sizeof(kept) - 1;

	return (len >= 8 && strncmp(name, ".dbtier-", 8) == 0) ||
	       (len >= kept_len && strncmp(name + len - kept_len, kept, kept_len) == 0);
}

/* Why a component cannot be; NULL when it can. */
static const char *component_problem(const char *name, size_t len)
{
	if (len == 2 && strncmp(name, "..", 2) == 0)
		return "leads upwards";
	if (len > NAME_MAX)
		return "has a name that is too long";
	if (is_reserved(name, len))
		return "has a name that only dbtier itself gives";
	return NULL;
}

/* "./a//b/" is "a/b". Returns the reason why it cannot be, NULL when it can; *ret is then filled. */
static const char *clean(const char *name, struct dbt_buf *ret)
{
	unsigned depth = 0;
	const char *why;

	if (*name == '/')
		return "has an absolute name";
	if (has_controls(name))
		return "has control characters in its name";
	for (size_t len; *name; name += len + (name[len] == '/')) {
		len = strcspn(name, "/");
		if (len == 0 || (len == 1 && *name == '.'))
			continue;
		why = component_problem(name, len);
		if (why)
			return why;
		if (++depth > DBT_BELOW_MOST_DEPTH)
			return "lies too deep";
		if ((ret->len && dbt_buf_addc(ret, '/') < 0) || dbt_buf_add(ret, name, len) < 0)
			return "does not fit into memory";
	}
	return ret->len > MOST_PATH_BYTES ? "has a name that is too long" : NULL;
}

static int refuse(struct dbt_err *err, const char *archive, const char *name, const char *why)
{
	return dbt_err_refuse(err, "'%s' in '%s' %s: nothing of the archive is used", name, archive,
	                      why);
}

/* Every directory above is one. */
static int add_parents(struct dbt_unpack_entries *e, const char *path, const char *archive,
                       struct dbt_err *err)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		const struct dbt_unpack_entry *parent = find(e, path, (size_t)(slash - path));

		if (parent && parent->type != DBT_ENTRY_DIRECTORY)
			return refuse(err, archive, path,
			              parent->type == DBT_ENTRY_LINK ? "lies below a link"
			                                             : "lies below a file");
		if (!parent && !add(e, path, (size_t)(slash - path), DBT_ENTRY_DIRECTORY))
			return dbt_err_sys(err, -ENOMEM, "cannot unpack '%s'", archive);
	}
	return 0;
}

/* ---- links ---- */

static unsigned depth_of(const char *path)
{
	unsigned depth = 0;

	for (; *path; path++)
		depth += *path == '/';
	return depth;
}

bool dbt_unpack_link_stays(const char *text, unsigned depth)
{
	bool down = false;

	if (*text == '\0' || *text == '/' || has_controls(text))
		return false;
	for (size_t len; *text; text += len + (text[len] == '/')) {
		len = strcspn(text, "/");
		if (len == 0 || (len == 1 && *text == '.'))
			continue;
		if (len == 2 && strncmp(text, "..", 2) == 0) {
			if (down || depth == 0)
				return false;
			depth--;
		} else {
			down = true;
		}
	}
	return true;
}

/* From the directory of `path` to `to`, both relative to the same root, by no directory more than needed. */
static char *relative(const char *path, const char *to)
{
	struct dbt_buf text = { 0 };
	size_t common = 0;
	int r = 0;

	for (size_t i = 0; path[i] && path[i] == to[i]; i++)
		if (path[i] == '/')
			common = i + 1;
	to += common;
	for (unsigned up = depth_of(path + common); r == 0 && up > 0; up--)
		r = dbt_buf_adds(&text, "../");
	if (r == 0)
		r = dbt_buf_adds(&text, to);
	if (r < 0) {
		dbt_buf_release(&text);
		return NULL;
	}
	return dbt_buf_take(&text);
}

/* A hard link names an entry before it, and nothing else. */
static int hard_link_text(struct dbt_unpack_entries *e, const char *path,
                          const struct dbt_entry *entry, const char *archive, char **ret,
                          struct dbt_err *err)
{
	struct dbt_buf to = { 0 };
	const char *why = clean(entry->link, &to);
	const struct dbt_unpack_entry *target = why ? NULL : dbt_unpack_find(e, dbt_buf_str(&to));
	int r = 0;

	if (!target || target->type != DBT_ENTRY_FILE || strcmp(target->path, path) == 0)
		r = refuse(err, archive, entry->name,
		           "is a hard link to something that is no file before it");
	else
		*ret = relative(path, target->path);
	if (r == 0 && !*ret)
		r = dbt_err_sys(err, -ENOMEM, "cannot unpack '%s'", archive);
	dbt_buf_release(&to);
	e->hard_links += r == 0;
	return r;
}

static int link_text(struct dbt_unpack_entries *e, const char *path, const struct dbt_entry *entry,
                     const char *archive, char **ret, struct dbt_err *err)
{
	if (entry->type == DBT_ENTRY_HARD_LINK)
		return hard_link_text(e, path, entry, archive, ret, err);
	if (strlen(entry->link) > MOST_PATH_BYTES ||
	    !dbt_unpack_link_stays(entry->link, depth_of(path)))
		return refuse(err, archive, entry->name, "is a link that leads out of the archive");
	*ret = strdup(entry->link);
	return *ret ? 0 : dbt_err_sys(err, -ENOMEM, "cannot unpack '%s'", archive);
}

/* ---- judging ---- */

static int judge_again(struct dbt_unpack_entry *known, enum dbt_entry_type type, const char *link,
                       const struct dbt_entry *entry, const char *archive,
                       struct dbt_unpack_entry **ret, struct dbt_err *err)
{
	if (known->type != type)
		return refuse(err, archive, entry->name, "comes twice, as different things");
	if (type == DBT_ENTRY_LINK && strcmp(known->link, link) != 0)
		return refuse(err, archive, entry->name,
		              "comes twice, as links to different things");
	*ret = known;
	return type == DBT_ENTRY_FILE ? 2 : 0;
}

static int judge_path(struct dbt_unpack_entries *e, const char *path, const struct dbt_entry *entry,
                      const char *archive, bool hot, struct dbt_unpack_entry **ret,
                      struct dbt_err *err)
{
	bool is_link = entry->type == DBT_ENTRY_LINK || entry->type == DBT_ENTRY_HARD_LINK;
	enum dbt_entry_type type = is_link ? DBT_ENTRY_LINK : entry->type;
	struct dbt_unpack_entry *known = dbt_unpack_find(e, path), *made;
	char *link = NULL;
	int r = is_link ? link_text(e, path, entry, archive, &link, err) : 0;

	if (r == 0 && known) {
		r = judge_again(known, type, link, entry, archive, ret, err);
		free(link);
		return r;
	}
	if (r == 0)
		r = add_parents(e, path, archive, err);
	if (r == 0 && e->n >= DBT_UNPACK_MOST_ENTRIES)
		r = dbt_err_refuse(err, "'%s' has more than %d entries", archive,
		                   DBT_UNPACK_MOST_ENTRIES);
	made = r == 0 ? add(e, path, strlen(path), type) : NULL;
	if (!made) {
		free(link);
		return r < 0 ? r : dbt_err_sys(err, -ENOMEM, "cannot unpack '%s'", archive);
	}
	made->link = link;
	made->hot = hot && type == DBT_ENTRY_FILE && !(entry->sized && entry->size_bytes == 0);
	e->set_bits += type == DBT_ENTRY_FILE && (entry->mode & 07000);
	*ret = made;
	return type == DBT_ENTRY_FILE;
}

int dbt_unpack_judge(struct dbt_unpack_entries *e, const struct dbt_entry *entry,
                     const char *archive, bool hot, struct dbt_unpack_entry **ret,
                     struct dbt_err *err)
{
	struct dbt_buf path = { 0 };
	const char *why = clean(entry->name, &path);
	int r = 0;

	if (!why && entry->type == DBT_ENTRY_OTHER)
		why = "is a device, a FIFO or a socket";
	if (!why && path.len == 0 && entry->type != DBT_ENTRY_DIRECTORY)
		why = "has no name";
	if (why) {
		r = refuse(err, archive, entry->name, why);
	} else if (path.len > 0) { /* "./" is the root itself */
		(void)pthread_mutex_lock(&e->mutex);
		r = judge_path(e, dbt_buf_str(&path), entry, archive, hot, ret, err);
		(void)pthread_mutex_unlock(&e->mutex);
	}
	dbt_buf_release(&path);
	return r;
}

int dbt_unpack_twin(struct dbt_unpack_entries *e, const struct dbt_unpack_entry *entry,
                    const char *archive, const struct dbt_digest *digest, struct dbt_err *err)
{
	struct dbt_unpack_twin *twin;

	(void)pthread_mutex_lock(&e->mutex);
	twin = dbt_vec_push(&e->twins);
	if (twin)
		*twin = (struct dbt_unpack_twin){ .entry = entry,
			                          .archive = archive,
			                          .digest = *digest };
	(void)pthread_mutex_unlock(&e->mutex);
	return twin ? 0 : dbt_err_sys(err, -ENOMEM, "cannot unpack '%s'", archive);
}

int dbt_unpack_compare_twins(const struct dbt_unpack_entries *e, struct dbt_err *err)
{
	for (size_t i = 0; i < e->twins.n; i++) {
		const struct dbt_unpack_twin *twin = &e->twins.items[i];

		if (!dbt_digest_equal(&twin->digest, &twin->entry->result.digest))
			return refuse(err, twin->archive, twin->entry->path,
			              "comes twice, with different contents");
	}
	return 0;
}

char *dbt_unpack_top(const struct dbt_unpack_entries *e)
{
	const struct dbt_unpack_entry *top = NULL;

	for (size_t i = 0; i < e->n; i++) {
		if (strchr(e->items[i]->path, '/'))
			continue;
		if (top || e->items[i]->type != DBT_ENTRY_DIRECTORY)
			return NULL;
		top = e->items[i];
	}
	/* A directory with nothing in it is no reason to leave it out. */
	return top && e->n > 1 ? strdup(top->path) : NULL;
}
