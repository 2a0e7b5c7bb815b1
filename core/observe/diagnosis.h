/* From what was seen to what it means: a pure function, so that a recording gives the same answer anywhere. */
#ifndef DBT_OBSERVE_DIAGNOSIS_H
#define DBT_OBSERVE_DIAGNOSIS_H

#include "observe/observation.h"

#include <stdbool.h>
#include <stddef.h>

enum dbt_diag_kind {
	DBT_DIAG_NOTHING = 0,
	DBT_DIAG_STORAGE, /* jobs wait for reads of a device */
	DBT_DIAG_NETWORK, /* ... of a network filesystem */
	DBT_DIAG_WRITES,  /* a device is busy with writes */
	DBT_DIAG_MEMORY,  /* what is read is dropped and read again, or swapped */
	DBT_DIAG_CPU,
};
const char *dbt_diag_kind_name(enum dbt_diag_kind kind); /* "storage-bound"; static */

enum dbt_remedy_kind {
	DBT_REMEDY_LEAVE = 0, /* a move would gain nothing */
	DBT_REMEDY_PROMOTE,
	DBT_REMEDY_WARM, /* it fits into memory */
	DBT_REMEDY_JOBS, /* how many the disk can feed */
	DBT_REMEDY_MEMORY,
	DBT_REMEDY_WRITER,
	DBT_REMEDY_PROBE, /* nothing was measured to base a forecast on */
};
const char *dbt_remedy_kind_name(enum dbt_remedy_kind kind); /* "promote"; static */

struct dbt_remedy {
	enum dbt_remedy_kind kind;
	char *text;
	char *basis;     /* what the figures come from; NULL */
	double factor;   /* so many times faster; 0: no forecast */
	double jobs_now; /* JOBS: that keep the disk busy as it is, and after a move; 0 unknown */
	double jobs_then;
};

/* Processes of one user with one name. */
struct dbt_diag_group {
	size_t first; /* the one that did most: an index of obs->processes */
	size_t n;
	unsigned threads;             /* most of one of them */
	double jobs;                  /* at a time, on average */
	double seconds;               /* of all of them together */
	double running, blocked;      /* shares of that */
	double cpus;                  /* that they kept busy */
	double top_thread;            /* the share of one CPU that the busiest thread had */
	double read_rate, write_rate; /* bytes a second; below 0 unknown */
	double delay; /* the share by the kernel's delay accounting; below 0 unknown */
	bool selected;
	size_t *files; /* indices of diagnosis->files, what they read most first */
	size_t n_files;
};

struct dbt_diag_file {
	size_t file; /* index of obs->files */
	double bytes,
		requests; /* read from the device in the observed time; requests below 0 unknown */
	double waited;    /* roughly the seconds that these reads took: for the order */
	double rate, misses_s;
	double mean_bytes, jumps, again; /* size of a request, shares; below 0 unknown */
	unsigned readers;
	bool selected;        /* used by a process that the user asked about */
	enum dbt_class class; /* as observed; UNKNOWN where there was too little to tell */
	bool fits_declared;   /* ... which is what is declared */
	const char *source;   /* "page cache trace", "file positions", "/proc/PID/io"; static */
};

struct dbt_diag_device {
	size_t device; /* index of obs->devices */
	size_t place;  /* a place that lies on it, or DBT_OBS_NONE */
	double reads_s, read_rate, writes_s, write_rate, mean_bytes;
	double latency_ns, queue, busy;
	double jumps;   /* share of the requests; below 0 unknown */
	double ceiling; /* what a probe measured for this pattern: reads or bytes a second; 0 never */
	bool by_rate;   /* ... bytes */
	double load;    /* share of the ceiling; below 0 unknown */
};

struct dbt_diagnosis {
	enum dbt_diag_kind kind;
	char *text;                 /* the verdict in words */
	size_t group, file, device; /* what it is about; DBT_OBS_NONE */
	struct {
		struct dbt_diag_group *items;
		size_t n, cap;
	} groups;
	struct {
		struct dbt_diag_file *items;
		size_t n, cap;
	} files;
	struct {
		struct dbt_diag_device *items;
		size_t n, cap;
	} devices;
	struct {
		struct dbt_remedy *items;
		size_t n, cap;
	} remedies;
};

/* 0 or -ENOMEM. On success the caller releases. */
int dbt_diagnose(const struct dbt_observation *obs, struct dbt_diagnosis *ret);
void dbt_diagnosis_release(struct dbt_diagnosis *d);

#endif
