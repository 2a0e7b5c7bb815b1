#include "survey/follow.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "survey/composite.h"
#include "survey/walk.h"
#include "sys/at.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

struct id {
	uint64_t dev, ino;
	bool walked;
};

static int by_id(const void *a, const void *b)
{
	const struct id *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return (x->ino > y->ino) - (x->ino < y->ino);
}

/* The entry for this directory, made when there is none. NULL without memory. */
static struct id *id_of(struct dbt_follow *follow, uint64_t dev, uint64_t ino, bool *ret_new)
{
	struct id *mine = calloc(1, sizeof(*mine)), *const * found;

	if (!mine)
		return NULL;
	mine->dev = dev;
	mine->ino = ino;
	found = tsearch(mine, &follow->ids, by_id);
	*ret_new = found && *found == mine;
	if (!*ret_new)
		free(mine);
	return found ? *found : NULL;
}

/* Takes path. */
static int add_path(struct dbt_follow_paths *paths, char *path)
{
	char **slot = dbt_vec_push(paths);

	if (!slot) {
		free(path);
		return -ENOMEM;
	}
	*slot = path;
	return 0;
}

int dbt_follow_begin(struct dbt_follow *follow, const char *path, uint64_t dev, uint64_t ino)
{
	char *copy = strdup(path);
	bool is_new;
	struct id *id = copy ? id_of(follow, dev, ino, &is_new) : NULL;

	if (!id) {
		free(copy);
		return -ENOMEM;
	}
	id->walked = true;
	return add_path(&follow->begun, copy);
}

int dbt_follow_add(struct dbt_follow *follow, const struct dbt_dir *dir,
                   const struct dbt_file *file)
{
	dbt_autoclose int fd = -1;
	char *path = NULL;
	bool is_new;
	int r;

	if (!id_of(follow, file->dev, file->ino, &is_new))
		return -ENOMEM;
	if (!is_new)
		return 0;
	fd = dir->ctx->sys->openat(dir->fd, file->name,
	                           O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK, 0);
	r = fd < 0 ? fd : dbt_fd_path(fd, &path);
	if (r == 0)
		return add_path(&follow->waiting, path);
	if (r != -ENOMEM)
		dbt_walk_trouble(dir->walk, dir->path, file->name, r);
	return r == -ENOMEM ? r : 0;
}

static bool was_passed(const struct dbt_follow *follow, const char *path)
{
	for (size_t i = 0; i < follow->begun.n; i++)
		if (dbt_path_below(follow->begun.items[i], path))
			return true;
	return false;
}

char *dbt_follow_next(struct dbt_follow *follow)
{
	while (follow->waiting.n > 0) {
		char *path = follow->waiting.items[--follow->waiting.n];

		if (!was_passed(follow, path))
			return path;
		free(path);
	}
	return NULL;
}

bool dbt_follow_walked(const struct dbt_follow *follow, uint64_t dev, uint64_t ino)
{
	const struct id key = { .dev = dev, .ino = ino };
	struct id *const *found = tfind(&key, &follow->ids, by_id);

	return found && (*found)->walked;
}

static void paths_release(struct dbt_follow_paths *paths)
{
	for (size_t i = 0; i < paths->n; i++)
		free(paths->items[i]);
	free(paths->items);
}

void dbt_follow_release(struct dbt_follow *follow)
{
	tdestroy(follow->ids, free);
	paths_release(&follow->begun);
	paths_release(&follow->waiting);
	*follow = (struct dbt_follow){ 0 };
}
