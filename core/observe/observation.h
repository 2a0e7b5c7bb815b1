/* What was seen of a machine during some seconds, as plain data: what a recording holds, and all that a diagnosis is
 * made from (diagnosis.h). Nothing in here is a judgement. Figures that could not be had are marked, never zero by
 * default: shares are below 0, counts have a `has_`. */
#ifndef DBT_OBSERVE_OBSERVATION_H
#define DBT_OBSERVE_OBSERVATION_H

#include "survey/database.h"
#include "survey/place.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DBT_OBS_NONE SIZE_MAX /* an index that leads nowhere */

/* Shares are of the time that all CPUs had, or of the observed time for pressure; below 0: not known. */
struct dbt_obs_machine {
	unsigned cpus;
	double busy, iowait, idle, steal;
	double io_some, io_full;         /* pressure (PSI): somebody, everybody waited for I/O */
	double memory_some, memory_full; /* ... for memory */
	uint64_t memory_bytes, available_bytes;
	/* The tightest memory cgroup that an observed job is in; 0: none has a limit. */
	uint64_t limit_bytes, limit_used_bytes, limit_file_bytes;
	uint64_t swapped_in_pages;
	uint64_t refaulted_pages; /* read again soon after they were dropped from the page cache */
};

struct dbt_obs_device {
	char *name; /* "sda", "dm-0" */
	uint64_t devno;
	bool disk; /* nothing of this machine lies below it */
	uint64_t reads, read_bytes, read_ns;
	uint64_t writes, write_bytes, write_ns;
	uint64_t busy_ns;  /* with at least one request in flight */
	uint64_t queue_ns; /* the sum over all requests of the time in flight */
	uint64_t traced_reads,
		traced_jumps; /* requests seen one by one; those not behind another */
};

/* A filesystem that observed files lie on, or could. */
struct dbt_obs_place {
	uint64_t devno; /* of the superblock */
	char *mount, *source, *fstype, *stack;
	char *device; /* the kernel's name of the topmost block device; NULL none */
	char **disks;
	size_t n_disks;
	enum dbt_tier tier;
	bool network, ram;
	uint64_t free_bytes;
	struct dbt_speeds speeds; /* measured by a probe within a day; zero where not */
};

/* A process that did something. In each tick of the observation it was running (some thread of it wanted a CPU),
 * blocked (some thread in state D, and none running), or neither. */
struct dbt_obs_process {
	int pid, parent;
	uint32_t uid;
	char *user, *name, *command;
	unsigned threads;
	double seconds; /* that it was observed */
	unsigned ticks, ticks_running, ticks_blocked;
	unsigned blocked_threads; /* sum over the ticks */
	uint64_t cpu_ns;
	uint64_t top_thread_ns; /* of the thread that computed most */
	bool has_delay, has_io, has_files;
	uint64_t delay_ns; /* waited for block I/O, by the kernel's delay accounting: all threads */
	uint64_t read_bytes, written_bytes; /* of devices */
	uint64_t called_bytes;              /* asked for by read(2), cached or not */
	uint64_t major_faults;
	uint64_t grown_bytes; /* of private memory */
	bool other_mounts;    /* in another mount namespace: a container */
	bool selected;        /* the user asked about it */
	bool ended;
};

enum dbt_obs_how {
	DBT_OBS_OPEN = 1 << 0,
	DBT_OBS_MAPPED = 1 << 1,
	DBT_OBS_WRITES = 1 << 2, /* open for writing, or mapped so */
};

/* What trace events tell about reads that went to the device, of a file or of one process's use of it. */
struct dbt_obs_reads {
	uint64_t bytes;
	uint64_t requests;    /* runs of neighbouring pages, as they were asked for */
	uint64_t jumps;       /* requests that did not go on where an earlier one ended */
	uint64_t again_bytes; /* read a second time within ten seconds */
	uint64_t faults;      /* touches of a mapping that had to look for the page */
};

struct dbt_obs_file {
	uint64_t devno, ino; /* of the superblock; its inode */
	char *path;          /* NULL: only the numbers are known */
	uint64_t size_bytes;
	size_t place;
	char *database, *format; /* of the catalogue; NULL unknown */
	enum dbt_class declared;
	double cached_before, cached_after; /* shares in the page cache */
	struct dbt_obs_reads reads;
	uint64_t
		moved_bytes; /* by the positions of descriptors: for when nothing could be traced */
	uint64_t moved_jumps, moves;
	unsigned how; /* of all its uses */
};

/* One process's use of one file. */
struct dbt_obs_use {
	size_t process, file;
	unsigned how;
	struct dbt_obs_reads reads;
};

struct dbt_observation {
	double seconds;
	uint64_t wall_ns;    /* when it ended */
	char *kernel;        /* "6.1.0-18-amd64" */
	bool traced;         /* events of the kernel were read */
	char *untraced;      /* why not, a clause; NULL */
	double traced_share; /* of the time; less than 1 where tracing had to pause to stay cheap */
	bool root;           /* could look into every process */
	unsigned hidden;     /* processes that could not be looked into */
	unsigned dropped;    /* ... that were too many to follow */
	uint64_t own_cpu_ns; /* what observing cost */
	uint64_t lost_events; /* of the trace, by a full buffer */
	char *command;        /* that was run to be observed; NULL */
	double command_seconds;
	struct dbt_obs_machine machine;
	struct {
		struct dbt_obs_device *items;
		size_t n, cap;
	} devices;
	struct {
		struct dbt_obs_place *items;
		size_t n, cap;
	} places;
	struct {
		struct dbt_obs_process *items;
		size_t n, cap;
	} processes;
	struct {
		struct dbt_obs_file *items;
		size_t n, cap;
	} files;
	struct {
		struct dbt_obs_use *items;
		size_t n, cap;
	} uses;
	size_t target; /* the faster place to move to; DBT_OBS_NONE */
};

void dbt_observation_init(struct dbt_observation *obs);
void dbt_observation_release(struct dbt_observation *obs);

/* The file with these numbers, added when new. NULL: out of memory. The pointer dies with the next one added. */
struct dbt_obs_file *dbt_observation_file(struct dbt_observation *obs, uint64_t devno,
                                          uint64_t ino);

/* The use of file by process (both indices), added when new. NULL: out of memory. */
struct dbt_obs_use *dbt_observation_use(struct dbt_observation *obs, size_t process, size_t file);

/* Index of the process, or DBT_OBS_NONE. */
size_t dbt_observation_process(const struct dbt_observation *obs, int pid);

#endif
