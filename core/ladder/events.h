/* What the processor itself counts while a loop runs: loads that missed the last cache, and loads
 * whose page was not in the TLB. Source: perf_event_open(2). */
#ifndef DBT_LADDER_EVENTS_H
#define DBT_LADDER_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

enum dbt_event { DBT_EVENT_CACHE_MISSES = 0, DBT_EVENT_TLB_MISSES, DBT_EVENTS };

struct dbt_events {
	int fds[DBT_EVENTS];   /* -1: not to be had */
	int codes[DBT_EVENTS]; /* why: -errno */
};

/* Never fails: what the kernel, the processor or a virtual machine does not give stays away.
 * Counts this thread in user mode only. */
void dbt_events_open(struct dbt_events *ret);
void dbt_events_close(struct dbt_events *events);

void dbt_events_reset(const struct dbt_events *events);
/* Between these two they count. */
void dbt_events_resume(const struct dbt_events *events);
void dbt_events_pause(const struct dbt_events *events);
/* Counts since the reset; scaled where the kernel had to share its counters. False: not known. */
bool dbt_events_get(const struct dbt_events *events, enum dbt_event event, double *ret);

#endif
