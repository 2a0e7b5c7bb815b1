#include "ladder/events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const uint64_t configs[DBT_EVENTS] = {
	[DBT_EVENT_CACHE_MISSES] = PERF_COUNT_HW_CACHE_LL | PERF_COUNT_HW_CACHE_OP_READ << 8 |
	                           PERF_COUNT_HW_CACHE_RESULT_MISS << 16,
	[DBT_EVENT_TLB_MISSES] = PERF_COUNT_HW_CACHE_DTLB | PERF_COUNT_HW_CACHE_OP_READ << 8 |
	                         PERF_COUNT_HW_CACHE_RESULT_MISS << 16,
};

void dbt_events_open(struct dbt_events *ret)
{
	for (unsigned i = 0; i < DBT_EVENTS; i++) {
		struct perf_event_attr attr = {
			.type = PERF_TYPE_HW_CACHE,
			.size = sizeof(attr),
			.config = configs[i],
			.disabled = 1,
			.exclude_kernel = 1,
			.exclude_hv = 1,
			.read_format =
				PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		};

		ret->fds[i] =
			(int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
		ret->codes[i] = ret->fds[i] < 0 ? -errno : 0;
	}
}

void dbt_events_close(struct dbt_events *events)
{
	for (unsigned i = 0; i < DBT_EVENTS; i++) {
		if (events->fds[i] >= 0)
			(void)close(events->fds[i]);
		events->fds[i] = -1;
	}
}

static void tell_all(const struct dbt_events *events, unsigned long request)
{
	for (unsigned i = 0; i < DBT_EVENTS; i++)
		if (events->fds[i] >= 0)
			(void)ioctl(events->fds[i], request, 0);
}

void dbt_events_reset(const struct dbt_events *events)
{
	tell_all(events, PERF_EVENT_IOC_RESET);
}

void dbt_events_resume(const struct dbt_events *events)
{
	tell_all(events, PERF_EVENT_IOC_ENABLE);
}

void dbt_events_pause(const struct dbt_events *events)
{
	tell_all(events, PERF_EVENT_IOC_DISABLE);
}

bool dbt_events_get(const struct dbt_events *events, enum dbt_event event, double *ret)
{
	struct {
		uint64_t value, enabled_ns, running_ns;
	} count;
	int fd = events->fds[event];

	if (fd < 0 || read(fd, &count, sizeof(count)) != (ssize_t)sizeof(count) ||
	    count.running_ns == 0)
		return false;
	*ret = (double)count.value * (double)count.enabled_ns / (double)count.running_ns;
	return true;
}
