#include "ladder/devrung.h"

#include "base/cleanup.h"
#include "ladder/dnafile.h"
#include "ladder/draw.h"
#include "survey/mounts.h"
#include "survey/probe.h"
#include "survey/probefiles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* With less data a disk's own cache would answer; a temporary file is written then. */
static const uint64_t ENOUGH_BYTES = UINT64_C(64) << 20;

/* Textbook values by tier: a random read, and a stream (1 MB in 1 ms and in 20 ms). */
static void fill_book(struct dbt_rung *rung)
{
	switch (rung->tier) {
	case DBT_TIER_NVME:
	case DBT_TIER_SSD:
		rung->book_lat_ns = 150e3;
		rung->book_stream = 1000000000;
		break;
	case DBT_TIER_HDD:
		rung->book_lat_ns = 10e6;
		rung->book_stream = 50000000;
		break;
	case DBT_TIER_UNKNOWN:
	case DBT_TIER_RAM:
	case DBT_TIER_NETWORK:
		break;
	}
}

static uint64_t bytes_of(const struct dbt_probe_files *files)
{
	uint64_t sum = 0;
	struct stat st;

	for (size_t i = 0; i < files->n; i++)
		if (stat(files->items[i], &st) == 0)
			sum += (uint64_t)st.st_blocks * 512;
	return sum;
}

/* Noise, so that nothing on the way can compress it. */
static int make_file(const struct dbt_ctx *ctx, const char *dir, struct dbt_dnafile *ret,
                     struct dbt_err *err)
{
	const uint64_t bytes = 2 * ENOUGH_BYTES;
	dbt_autofree uint64_t *noise = malloc(bytes);
	struct dbt_draw draw = { .state = ctx->sys->wall_ns() };

	if (!noise)
		return dbt_err_sys(err, -ENOMEM, "cannot measure '%s'", dir);
	for (uint64_t i = 0; i < bytes / sizeof(*noise); i++)
		noise[i] = dbt_draw_next(&draw);
	return dbt_dnafile_new(ctx, dir, noise, bytes, ret, err);
}

static int set_note(struct dbt_rung *rung, const char *text)
{
	if (rung->note)
		return 0; /* the first reason is enough */
	rung->note = strdup(text);
	return rung->note ? 0 : -ENOMEM;
}

static void keep_result(struct dbt_rung *rung, const struct dbt_probe_result *r)
{
	if (r->pattern == DBT_PATTERN_STREAM) {
		*(r->jobs > 1 ? &rung->stream4 : &rung->stream1) = r->rate_bytes_s;
	} else if (r->jobs > 1) {
		rung->iops4 = r->iops;
	} else {
		rung->iops1 = r->iops;
		rung->lat_ns = (double)r->lat_p50_ns;
		rung->set_bytes = r->span_bytes;
	}
	rung->proved = rung->proved && r->proved;
}

static int run_patterns(const struct dbt_ctx *ctx, const struct dbt_probe_target *target,
                        uint64_t pattern_ns, struct dbt_rung *rung, struct dbt_speeds *speeds,
                        struct dbt_err *err)
{
	const struct dbt_probe_opts opts = { .max_ns = pattern_ns };

	rung->proved = true;
	for (unsigned i = 0; i < 4; i++) {
		struct dbt_probe_result result = { 0 };
		int r = dbt_probe_run(ctx, target, i < 2 ? DBT_PATTERN_RANDOM : DBT_PATTERN_STREAM,
		                      i % 2 ? 4 : 1, &opts, &result, err);

		if (r == -ECANCELED || r == -ENOMEM)
			return r;
		if (r == 0 && result.interrupted)
			r = dbt_err_sys(err, -ECANCELED, "the ladder was stopped");
		else if (r < 0)
			r = set_note(rung, err->text);
		else
			r = result.note ? set_note(rung, result.note) : 0;
		if (r == 0 && result.reads > 0) {
			keep_result(rung, &result);
			dbt_speeds_add(speeds, &result);
		}
		dbt_probe_result_release(&result);
		if (r < 0)
			return r == -ENOMEM ? dbt_err_sys(err, r, "cannot keep a measurement") : r;
	}
	rung->proved = rung->proved && rung->lat_ns > 0;
	return 0;
}

/* Fills what is known of the place behind fd. */
static int locate(const struct dbt_ctx *ctx, const struct dbt_mounts *mounts, int fd,
                  const struct dbt_speeds *speeds, struct dbt_rung *rung, struct dbt_err *err)
{
	struct dbt_place place;
	int r = dbt_place_of_fd(ctx, mounts, fd, speeds, &place, err);

	if (r < 0)
		return r;
	rung->size_bytes = place.size_bytes;
	rung->tier = place.tier;
	free(rung->device);
	rung->device = place.device ? strdup(place.device) : NULL;
	dbt_place_release(&place);
	fill_book(rung);
	return 0;
}

static int probe(const struct dbt_ctx *ctx, const struct dbt_mounts *mounts,
                 const char *const *paths, size_t n_paths, uint64_t pattern_ns,
                 struct dbt_rung *rung, struct dbt_err *err)
{
	dbt_autoclose int fd = open(paths[0], O_PATH | O_CLOEXEC);
	struct dbt_place place = { 0 };
	struct dbt_speeds speeds = { 0 };
	const struct dbt_probe_target target = { paths, n_paths, &place };
	int r;

	if (fd < 0)
		return dbt_err_sys(err, -errno, "cannot open '%s'", paths[0]);
	r = dbt_place_of_fd(ctx, mounts, fd, NULL, &place, err);
	if (r == 0) {
		r = run_patterns(ctx, &target, pattern_ns, rung, &speeds, err);
		dbt_place_release(&place);
	}
	return r < 0 ? r : locate(ctx, mounts, fd, &speeds, rung, err);
}

static int probe_new_file(const struct dbt_ctx *ctx, const struct dbt_mounts *mounts,
                          uint64_t pattern_ns, struct dbt_rung *rung, struct dbt_err *err)
{
	struct dbt_dnafile file = DBT_DNAFILE_NONE;
	char path[64];
	const char *paths[] = { path };
	int r = make_file(ctx, rung->name, &file, err);

	if (r < 0)
		return r == -ECANCELED || r == -ENOMEM ? r : set_note(rung, err->text);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file.fd);
	r = probe(ctx, mounts, paths, 1, pattern_ns, rung, err);
	dbt_dnafile_close(&file);
	if (r == 0)
		r = set_note(rung, "on a temporary file of 128 MiB: near seeks only");
	return r;
}

static int probe_files_or_new(const struct dbt_ctx *ctx, const struct dbt_mounts *mounts,
                              uint64_t pattern_ns, struct dbt_rung *rung, struct dbt_err *err)
{
	struct dbt_probe_files files = { 0 };
	int r = dbt_probe_files_find(rung->name, &files, err);

	if (r == 0 && bytes_of(&files) >= ENOUGH_BYTES)
		r = probe(ctx, mounts, (const char *const *)files.items, files.n, pattern_ns, rung,
		          err);
	else if (r == 0 || r == -ENODATA)
		r = probe_new_file(ctx, mounts, pattern_ns, rung, err);
	dbt_probe_files_release(&files);
	return r;
}

int dbt_devrung_measure(const struct dbt_ctx *ctx, uint64_t pattern_ns, struct dbt_rung *rung,
                        struct dbt_err *err)
{
	dbt_autoclose int fd = open(rung->name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct dbt_mounts *mounts = NULL;
	int r;

	if (fd < 0)
		return dbt_err_sys(err, -errno, "cannot measure '%s'", rung->name);
	r = dbt_mounts_new(ctx, &mounts, err);
	if (r == 0)
		r = locate(ctx, mounts, fd, NULL, rung, err);
	if (r == 0 && rung->tier == DBT_TIER_RAM)
		r = set_note(rung, "lies in memory: no device to measure");
	else if (r == 0)
		r = probe_files_or_new(ctx, mounts, pattern_ns, rung, err);
	dbt_mounts_free(mounts);
	if (r == -ECANCELED || r == -ENOMEM)
		return r;
	if (r < 0)
		r = set_note(rung, err->text);
	rung->failed = rung->lat_ns <= 0 && rung->tier != DBT_TIER_RAM;
	return r < 0 ? dbt_err_sys(err, r, "cannot keep a measurement") : 0;
}
