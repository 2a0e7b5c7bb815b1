#include "survey/material.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "survey/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Enough to spread a few hundred random reads and some streams over. */
enum { MAX_FILES = 64, LOOK_NS = 400000000 };
static const uint64_t MIN_FILE_BYTES = 2U << 20, ENOUGH_BYTES = 2ULL << 30;

struct search {
	struct {
		char **items;
		size_t n, cap;
	} paths;
	uint64_t bytes, end_ns;
};

static int visit(void *data, struct dbt_dir *dir)
{
	struct search *s = data;

	for (size_t i = 0; i < dir->n_files && s->paths.n < MAX_FILES; i++) {
		const struct dbt_file *file = &dir->files[i];
		char **path;

		if (file->foreign_link || file->promoted || file->size_bytes < MIN_FILE_BYTES)
			continue;
		path = dbt_vec_push(&s->paths);
		if (!path)
			return -ENOMEM;
		if (asprintf(path, "%s/%s", strcmp(dir->path, "/") == 0 ? "" : dir->path,
		             file->name) < 0) {
			s->paths.n--;
			return -ENOMEM;
		}
		s->bytes += file->size_bytes;
	}
	if (s->paths.n >= MAX_FILES || s->bytes >= ENOUGH_BYTES ||
	    dir->ctx->sys->now_ns() >= s->end_ns)
		return -ECANCELED; /* ends the walk */
	return 0;
}

int dbt_material_find(const struct dbt_ctx *ctx, const char *dir, struct dbt_material *ret)
{
	const struct dbt_scan_opts opts = { .one_file_system = true };
	struct dbt_scan_result ignored = { 0 };
	struct search s = { .end_ns = ctx->sys->now_ns() + LOOK_NS };
	struct dbt_walk walk = {
		.ctx = ctx, .opts = &opts, .result = &ignored, .visit = visit, .data = &s
	};
	dbt_autoclose int fd =
		ctx->sys->openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK, 0);
	int r = fd < 0 ? fd : dbt_walk_tree(&walk, fd, dir);

	dbt_scan_result_release(&ignored);
	*ret = (struct dbt_material){ .paths = s.paths.items, .n = s.paths.n };
	if (r < 0)
		dbt_material_release(ret);
	return r;
}

void dbt_material_release(struct dbt_material *material)
{
	for (size_t i = 0; i < material->n; i++)
		free(material->paths[i]);
	free(material->paths);
	*material = (struct dbt_material){ 0 };
}
