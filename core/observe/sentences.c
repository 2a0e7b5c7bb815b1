/* How a verdict is put into words. */
#include "base/vec.h"
#include "observe/judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dbt_judge_say(struct dbt_judge *j, const char *fmt, ...)
{
	char part[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(part, sizeof(part), fmt, ap);
	va_end(ap);
	j->failed |= dbt_buf_adds(&j->text, part) < 0;
}

/* Names of files are bytes and can be long: they are put together piece by piece. */
void dbt_judge_say_name(struct dbt_judge *j, const char *name)
{
	j->failed |= dbt_buf_adds(&j->text, name) < 0;
}

/* Takes what was said as the text of a remedy. */
struct dbt_remedy *dbt_judge_remedy(struct dbt_judge *j, enum dbt_remedy_kind kind)
{
	static struct dbt_remedy nowhere;
	struct dbt_remedy *r = dbt_vec_push(&j->d->remedies);

	if (!r) {
		j->failed = true;
		dbt_buf_release(&j->text);
		return &nowhere;
	}
	r->kind = kind;
	r->text = dbt_buf_take(&j->text);
	j->failed |= !r->text;
	return r;
}

void dbt_judge_verdict(struct dbt_judge *j, enum dbt_diag_kind kind)
{
	j->d->kind = kind;
	free(j->d->text);
	j->d->text = dbt_buf_take(&j->text);
	j->failed |= !j->d->text;
}

/* --- words --- */

/* Whole jobs: a little more than one is one. */
unsigned dbt_judge_whole(double jobs)
{
	return jobs < 1.5 ? 1 : jobs > 1e6 ? 1000000 : (unsigned)(jobs + 0.5);
}

const struct dbt_obs_process *dbt_judge_process_of(const struct dbt_judge *j,
                                                   const struct dbt_diag_group *g)
{
	return &j->obs->processes.items[g->first];
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

void dbt_judge_say_group(struct dbt_judge *j, const struct dbt_diag_group *g)
{
	dbt_judge_say_name(j, dbt_judge_process_of(j, g)->name);
	if (g->n > 1)
		dbt_judge_say(j, " x %zu", g->n);
	else
		dbt_judge_say(j, " (%d)", dbt_judge_process_of(j, g)->pid);
}

void dbt_judge_say_file(struct dbt_judge *j, size_t at)
{
	const struct dbt_obs_file *f = &j->obs->files.items[j->d->files.items[at].file];

	if (f->path)
		dbt_judge_say_name(j, base_name(f->path));
	else
		dbt_judge_say(j, "inode %llu", (unsigned long long)f->ino);
}

/* The files that the group reads from the same place, those that matter: "a.dmnd, b.dmnd and 3 more". */
void dbt_judge_say_files(struct dbt_judge *j, size_t main)
{
	enum { SHOWN = 4 };
	const size_t place = j->obs->files.items[j->d->files.items[main].file].place;
	const double least = j->d->files.items[main].waited / 20;
	unsigned n = 0;

	for (size_t i = 0; i < j->g->n_files; i++) {
		const struct dbt_diag_file *f = &j->d->files.items[j->g->files[i]];

		if (f->bytes <= 0 || f->waited < least ||
		    j->obs->files.items[f->file].place != place)
			continue;
		if (n++ >= SHOWN)
			continue;
		dbt_judge_say(j, "%s", n > 1 ? ", " : "");
		dbt_judge_say_file(j, j->g->files[i]);
	}
	if (n > SHOWN)
		dbt_judge_say(j, " and %u more", n - SHOWN);
}

/* How many of the group read from a place at a time. */
unsigned dbt_judge_readers_of(const struct dbt_judge *j, size_t place)
{
	unsigned n = 0;

	for (size_t p = 0; p < j->obs->processes.n; p++) {
		bool reads = false;

		for (size_t u = 0; !reads && u < j->obs->uses.n; u++) {
			const struct dbt_obs_use *use = &j->obs->uses.items[u];

			reads = use->process == p && use->reads.bytes > 0 &&
			        j->obs->files.items[use->file].place == place &&
			        dbt_diag_is_alike(&j->obs->processes.items[p],
			                          &j->obs->processes.items[j->g->first]);
		}
		n += reads;
	}
	return n < dbt_judge_whole(j->g->jobs) ? n : dbt_judge_whole(j->g->jobs);
}

const struct dbt_obs_place *dbt_judge_place_of(const struct dbt_judge *j, size_t file)
{
	size_t place = j->obs->files.items[j->d->files.items[file].file].place;

	return place == DBT_OBS_NONE ? NULL : &j->obs->places.items[place];
}

void dbt_judge_say_device(struct dbt_judge *j, size_t device)
{
	const struct dbt_diag_device *v = &j->d->devices.items[device];
	const struct dbt_obs_place *p =
		v->place == DBT_OBS_NONE ? NULL : &j->obs->places.items[v->place];

	dbt_judge_say_name(j, j->obs->devices.items[v->device].name);
	if (p)
		dbt_judge_say(j, " (%s, %s)", dbt_tier_name(p->tier), p->mount);
}
