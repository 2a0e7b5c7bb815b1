#include "flow/measure.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "flow/remember.h"
#include "flow/tree.h"
#include "survey/mounts.h"
#include "survey/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_enough(const struct dbt_speeds *speeds)
{
	return speeds->random1.proved && speeds->stream1.proved;
}

void dbt_measure_files(const struct dbt_ctx *ctx, const char *state_dir,
                       const struct dbt_place *place, const char *const *paths, size_t n_paths,
                       bool probe, struct dbt_speeds *ret)
{
	const struct dbt_probe_target target = { .paths = paths,
		                                 .n_paths = n_paths,
		                                 .place = place };
	struct dbt_err err;

	(void)dbt_remember_get_speeds(ctx, state_dir, place, DBT_REMEMBER_DAY_NS, ret, &err);
	if (!probe || is_enough(ret))
		return;
	if (dbt_probe_quick(ctx, &target, ret, &err) < 0) {
		dbt_ctx_log(ctx, DBT_LOG_DETAIL, "not measured: %s", err.text);
		return;
	}
	ret->measured_wall_ns = ctx->sys->wall_ns();
	if (dbt_remember_put_speeds(ctx, state_dir, place, ret, &err) < 0)
		dbt_ctx_log(ctx, DBT_LOG_DETAIL, "%s", err.text);
}

/* Of so many files of a directory. */
enum { MAX_INNER = 64 };

/* to / from, 0 unless both are proved. */
static double ratio(const struct dbt_speed *from, const struct dbt_speed *to, double from_value,
                    double to_value)
{
	return from->proved && to->proved && from_value > 0 ? to_value / from_value : 0;
}

static double random_ratio(const struct dbt_speeds *from, const struct dbt_speeds *to)
{
	return ratio(&from->random1, &to->random1, from->random1.iops, to->random1.iops);
}

static double stream_ratio(const struct dbt_speeds *from, const struct dbt_speeds *to)
{
	return ratio(&from->stream1, &to->stream1, (double)from->stream1.rate_bytes_s,
	             (double)to->stream1.rate_bytes_s);
}

double dbt_measured_gain(const struct dbt_speeds *from, const struct dbt_speeds *to)
{
	double random = random_ratio(from, to), stream = stream_ratio(from, to);

	return random > stream ? random : stream;
}

/* "random 4k reads 207/s -> 79700/s (385x), one stream 210 MB/s -> 3.2 GB/s (15x)" */
static int add_comparison(struct dbt_buf *buf, const struct dbt_speeds *from,
                          const struct dbt_speeds *to)
{
	char a[DBT_UNITS_TEXT_BYTES], b[DBT_UNITS_TEXT_BYTES];
	int r = 0;

	if (random_ratio(from, to) > 0)
		r = dbt_buf_addf(buf, "random 4k reads %.0f/s -> %.0f/s (%.1fx)",
		                 from->random1.iops, to->random1.iops, random_ratio(from, to));
	if (r == 0 && stream_ratio(from, to) > 0)
		r = dbt_buf_addf(buf, "%sone stream %s -> %s (%.1fx)", buf->len ? ", " : "",
		                 dbt_units_rate(from->stream1.rate_bytes_s, a),
		                 dbt_units_rate(to->stream1.rate_bytes_s, b),
		                 stream_ratio(from, to));
	return r;
}

static void tell(const struct dbt_ctx *ctx, const struct dbt_promotion *p,
                 const struct dbt_speeds *from, const struct dbt_speeds *to)
{
	double gain = dbt_measured_gain(from, to);
	struct dbt_buf text = { 0 };

	if (gain <= 0) {
		dbt_ctx_log(ctx, DBT_LOG_NOTE,
		            "what the move of '%s' brought could not be measured here", p->path);
		return;
	}
	if (add_comparison(&text, from, to) == 0 && gain >= 1.2)
		dbt_ctx_log(ctx, DBT_LOG_NOTE, "measured, original and copy of '%s': %s", p->path,
		            dbt_buf_str(&text));
	else
		dbt_ctx_log(ctx, DBT_LOG_WARNING,
		            "measured, original and copy of '%s': %s; that is no gain, 'dbtier "
		            "rollback' undoes it",
		            p->path, dbt_buf_str(&text));
	dbt_buf_release(&text);
}

/* The speeds of the filesystem of these files. */
static int measure_side(const struct dbt_ctx *ctx, const char *state_dir,
                        const struct dbt_mounts *mounts, const char *const *paths, size_t n,
                        struct dbt_speeds *ret)
{
	dbt_autoclose int fd =
		ctx->sys->openat(AT_FDCWD, paths[0], O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
	struct dbt_place place = { 0 };
	struct dbt_err err;
	int r;

	if (fd < 0)
		return fd;
	r = dbt_place_of_fd(ctx, mounts, fd, NULL, &place, &err);
	if (r == 0)
		dbt_measure_files(ctx, state_dir, &place, paths, n, true, ret);
	dbt_place_release(&place);
	return r;
}

static char *kept_path(const struct dbt_pmember *m)
{
	const char *slash = strrchr(m->path, '/');
	char *path = NULL;

	if (asprintf(&path, "%.*s/%s", (int)(slash - m->path), m->path, m->kept) < 0)
		return NULL;
	return path;
}

/* Of a directory: large files in it, of the copy and of the original. */
static int add_inner(const struct dbt_promotion *p, char **copies, char **kept, size_t *n)
{
	enum { MIN_BYTES = 1 << 20 };
	dbt_autofree char *list = dbt_tree_list_path(p, ".tree");
	dbt_autofree char *original = kept_path(&p->members[0]);
	struct dbt_tree_reader reader = { 0 };
	struct dbt_tree_entry e;
	int r = list && original ? dbt_tree_reader_open(list, &reader, NULL) : -ENOMEM;

	while (r == 0 && *n < MAX_INNER && (r = dbt_tree_reader_next(&reader, &e, NULL)) == 1) {
		r = 0;
		if (e.kind != 'f' || e.source.size_bytes < MIN_BYTES)
			continue;
		if (asprintf(&copies[*n], "%s/%s", p->members[0].copy, e.path) < 0)
			copies[*n] = NULL;
		if (asprintf(&kept[*n], "%s/%s", original, e.path) < 0)
			kept[*n] = NULL;
		r = copies[*n] && kept[*n] ? 0 : -ENOMEM;
		++*n;
	}
	dbt_tree_reader_release(&reader);
	return r < 0 ? r : 0;
}

static void measure_tree(const struct dbt_ctx *ctx, const char *state_dir,
                         const struct dbt_mounts *mounts, const struct dbt_promotion *p)
{
	char *copies[MAX_INNER] = { 0 }, *kept[MAX_INNER] = { 0 };
	struct dbt_speeds from = { 0 }, to = { 0 };
	size_t n = 0;

	if (add_inner(p, copies, kept, &n) == 0 && n > 0 &&
	    measure_side(ctx, state_dir, mounts, (const char *const *)kept, n, &from) == 0 &&
	    measure_side(ctx, state_dir, mounts, (const char *const *)copies, n, &to) == 0)
		tell(ctx, p, &from, &to);
	for (size_t i = 0; i < n; i++) {
		free(copies[i]);
		free(kept[i]);
	}
}

static int measure_both(const struct dbt_ctx *ctx, const char *state_dir,
                        const struct dbt_mounts *mounts, const struct dbt_promotion *p,
                        const char **copies, char **kept)
{
	struct dbt_speeds from = { 0 }, to = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < p->n_members; i++) {
		copies[i] = p->members[i].copy;
		kept[n] = p->members[i].reclaimed ? NULL : kept_path(&p->members[i]);
		n += kept[n] != NULL;
	}
	if (n == 0 ||
	    measure_side(ctx, state_dir, mounts, (const char *const *)kept, n, &from) < 0 ||
	    measure_side(ctx, state_dir, mounts, copies, p->n_members, &to) < 0)
		return -1;
	tell(ctx, p, &from, &to);
	return 0;
}

void dbt_measure_promotion(const struct dbt_ctx *ctx, const char *state_dir,
                           const struct dbt_promotion *p)
{
	const char **copies = calloc(p->n_members, sizeof(*copies));
	char **kept = calloc(p->n_members, sizeof(*kept));
	struct dbt_mounts *mounts = NULL;

	if (copies && kept && dbt_mounts_new(ctx, &mounts, NULL) == 0 && dbt_promotion_is_tree(p))
		measure_tree(ctx, state_dir, mounts, p);
	else if (mounts)
		(void)measure_both(ctx, state_dir, mounts, p, copies, kept);
	for (size_t i = 0; kept && i < p->n_members; i++)
		free(kept[i]);
	free(copies);
	free(kept);
	dbt_mounts_free(mounts);
}
