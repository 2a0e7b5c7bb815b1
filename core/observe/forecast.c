#include "observe/forecast.h"

#include "base/buf.h"
#include "base/units.h"
#include "observe/findings.h"

#include <errno.h>
#include <stdlib.h>

/* A device's requests of this mean size are no stream. */
static const double SMALL_READ = 32 << 10;

/* What a group reads from one place: per second of observation. */
struct demand {
	double random_requests, random_bytes;
	double stream_bytes;
};

static bool belongs(const struct dbt_observation *obs, const struct dbt_diag_group *g,
                    const struct dbt_obs_use *u)
{
	return dbt_diag_is_alike(&obs->processes.items[g->first],
	                         &obs->processes.items[u->process]);
}

static void add_demand(const struct dbt_observation *obs, const struct dbt_diagnosis *d,
                       const struct dbt_diag_group *g, const struct dbt_diag_file *f,
                       struct demand *sum)
{
	double bytes = 0, requests = 0;
	bool random = dbt_diag_is_random(f);

	for (size_t u = 0; u < obs->uses.n; u++) {
		const char *source;
		double n;

		if (obs->uses.items[u].file != f->file || !belongs(obs, g, &obs->uses.items[u]))
			continue;
		bytes += dbt_use_bytes(obs, &obs->uses.items[u], &n, &source);
		requests += n > 0 ? n : 0;
	}
	/* Without a trace the device's own requests say how large they are. */
	if (requests <= 0) {
		size_t v = dbt_diag_device_of(obs, d, obs->files.items[f->file].place);
		double mean = v == DBT_OBS_NONE ? -1 : d->devices.items[v].mean_bytes;

		requests = mean > 0 ? bytes / mean : bytes / 4096;
		random |= f->class == DBT_CLASS_UNKNOWN && mean > 0 && mean <= SMALL_READ;
	}
	if (random) {
		sum->random_requests += requests / obs->seconds;
		sum->random_bytes += bytes / obs->seconds;
	} else {
		sum->stream_bytes += bytes / obs->seconds;
	}
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

/* Job-seconds that the demand of one second costs in waiting, when `jobs` share the device. False: not measured. */
static bool waiting(const struct dbt_speeds *s, const struct demand *n, double jobs, double *ret)
{
	double one = 0, rate = (double)s->stream1.rate_bytes_s;

	*ret = 0;
	if (n->random_requests > 0) {
		double extra = larger(n->random_bytes - n->random_requests * 4096, 0);

		if (s->random1.iops <= 0)
			return false;
		one = 1 / s->random1.iops;
		/* Four jobs tell how much the device does at once. */
		if (jobs > 1 && s->random4.iops > 0)
			one = larger(one, jobs / larger(s->random4.iops, s->random1.iops));
		*ret += n->random_requests * one + (rate > 0 ? extra / rate : 0);
	}
	if (n->stream_bytes > 0) {
		if (rate <= 0)
			return false;
		if (jobs > 1 && s->stream4.rate_bytes_s > 0)
			rate = smaller(rate, larger((double)s->stream4.rate_bytes_s, rate) / jobs);
		*ret += n->stream_bytes / rate;
	}
	return true;
}

/* Seconds that the device itself is busy with the demand of one second, however many ask. */
static double service(const struct dbt_speeds *s, const struct demand *n)
{
	double iops = larger(s->random4.iops, s->random1.iops),
	       rate = (double)(s->stream4.rate_bytes_s ? s->stream4.rate_bytes_s
	                                               : s->stream1.rate_bytes_s),
	       extra = larger(n->random_bytes - n->random_requests * 4096, 0);

	return (n->random_requests > 0 && iops > 0 ? n->random_requests / iops : 0) +
	       (rate > 0 ? (n->stream_bytes + extra) / rate : 0);
}

static int add_count(struct dbt_buf *buf, double v)
{
	return v >= 1e6    ? dbt_buf_addf(buf, "%.1f million", v / 1e6)
	       : v >= 1000 ? dbt_buf_addf(buf, "%.0f,%03.0f", (double)(long)(v / 1000),
	                                  v - 1000 * (double)(long)(v / 1000))
	                   : dbt_buf_addf(buf, "%.0f", v);
}

static int describe(const struct dbt_observation *obs, const struct demand *n, size_t to,
                    double waiting_now, char **ret)
{
	const struct dbt_speeds *s = &obs->places.items[to].speeds;
	char now[DBT_UNITS_TEXT_BYTES], one[DBT_UNITS_TEXT_BYTES], four[DBT_UNITS_TEXT_BYTES];
	struct dbt_buf buf = { 0 };
	int r = dbt_buf_addf(&buf, "%.0f %% of the time waits for reads; ", waiting_now * 100);

	if (r == 0 && n->random_requests > 0) {
		r = dbt_buf_addf(&buf, "random: ");
		if (r == 0)
			r = add_count(&buf, n->random_requests);
		if (r == 0)
			r = dbt_buf_adds(&buf, " reads/s now, a probe of the target gave ");
		if (r == 0)
			r = add_count(&buf, larger(s->random1.iops, s->random4.iops));
		if (r == 0)
			r = dbt_buf_adds(&buf, n->stream_bytes > 0 ? "; " : "");
	}
	if (r == 0 && n->stream_bytes > 0)
		r = dbt_buf_addf(&buf, "stream: %s now, a probe of the target gave %s%s%s%s",
		                 dbt_units_rate((uint64_t)n->stream_bytes, now),
		                 dbt_units_rate(s->stream1.rate_bytes_s, one),
		                 s->stream4.rate_bytes_s ? " to one, " : "",
		                 s->stream4.rate_bytes_s
		                         ? dbt_units_rate(s->stream4.rate_bytes_s, four)
		                         : "",
		                 s->stream4.rate_bytes_s ? " to four streams" : "");
	if (r < 0) {
		dbt_buf_release(&buf);
		return r;
	}
	*ret = dbt_buf_take(&buf);
	return *ret ? 0 : -ENOMEM;
}

/* How long the present device is busy with the group's reads, in a second: its counters, shared out by bytes. */
static double service_now(const struct dbt_observation *obs, const struct dbt_diagnosis *d,
                          size_t from, const struct demand *n)
{
	size_t at = dbt_diag_device_of(obs, d, from);
	const struct dbt_diag_device *v;
	double bytes = n->random_bytes + n->stream_bytes;

	if (at == DBT_OBS_NONE)
		return 0;
	v = &d->devices.items[at];
	return v->read_rate > 0 ? v->busy * smaller(bytes / v->read_rate, 1) : 0;
}

/* The share of the time that is no waiting for reads. Of jobs that hardly do anything else, ticks tell it badly: the CPU
 * time of a single thread is exact. */
static double staying(const struct dbt_diag_group *g)
{
	const double ticks = 1 - g->blocked, other = larger(ticks - g->running, 0);

	if (g->threads > 1 || ticks > 0.3)
		return ticks;
	return smaller(ticks, g->cpus / g->jobs + other);
}

int dbt_forecast(const struct dbt_observation *obs, const struct dbt_diagnosis *d,
                 const struct dbt_diag_group *g, size_t from, size_t to, struct dbt_forecast *ret)
{
	struct demand n = { 0 };
	double computing, then, busy, cpus;

	*ret = (struct dbt_forecast){ .waiting_now = g->blocked };
	for (size_t i = 0; i < g->n_files; i++)
		if (obs->files.items[d->files.items[g->files[i]].file].place == from)
			add_demand(obs, d, g, &d->files.items[g->files[i]], &n);
	if (g->jobs <= 0 || obs->seconds <= 0)
		return 0;
	/* In one second of observation: job-seconds that are no waiting, and that stay. */
	computing = g->jobs * staying(g);
	busy = service_now(obs, d, from, &n);
	if (busy > 0)
		ret->jobs_now = (computing + busy) / busy;
	if (to == DBT_OBS_NONE || n.random_requests + n.stream_bytes <= 0 ||
	    !waiting(&obs->places.items[to].speeds, &n, g->jobs, &then))
		return 0;
	then = smaller(then, g->jobs * g->blocked);
	/* When they wait less they want their CPUs in less time: there may be too few. */
	computing = larger(computing, g->jobs * smaller(g->cpus / obs->machine.cpus, 1) - then);
	ret->factor = g->jobs / larger(computing + then, g->jobs / 1000);
	ret->waiting_then = then / larger(computing + then, 1e-9);
	busy = service(&obs->places.items[to].speeds, &n);
	if (busy > 0)
		ret->jobs_then = (computing + then) / busy;
	/* CPUs end it before the device does: what is computed in the work of one second. */
	cpus = larger(g->cpus, 1e-6);
	if (ret->jobs_then > 0)
		ret->jobs_then =
			smaller(ret->jobs_then, obs->machine.cpus * (computing + then) / cpus);
	return describe(obs, &n, to, g->blocked, &ret->basis);
}
