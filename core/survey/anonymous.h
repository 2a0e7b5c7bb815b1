/* Takes names of people and hosts out of captured text. The same name always gets the same stand-in,
 * so that the parts of a capture still fit together. */
#ifndef DBT_SURVEY_ANONYMOUS_H
#define DBT_SURVEY_ANONYMOUS_H

#include "base/buf.h"

#include <stddef.h>

struct dbt_name_list {
	char **items;
	size_t n, cap;
};

struct dbt_anonymous {
	char *host; /* of this machine, without its domain; NULL unknown; owned */
	struct dbt_name_list users, servers, subsystems;
};

void dbt_anonymous_release(struct dbt_anonymous *a);

/* Text of any kind: user names in paths (/home/NAME, /media/NAME, /run/media/NAME, /run/user/NAME)
 * and the host's name as a word. Appends to out. 0 or -ENOMEM. */
int dbt_anonymous_text(struct dbt_anonymous *a, const char *text, struct dbt_buf *out);

/* A mount table: as above; sources of network filesystems keep their shape, not their server, and
 * their options are dropped. */
int dbt_anonymous_mountinfo(struct dbt_anonymous *a, const char *text, struct dbt_buf *out);

/* A device-mapper UUID: the prefix that tells the kind stays, the unique part becomes zeros. */
int dbt_anonymous_dm_uuid(const char *text, struct dbt_buf *out);

/* An NVMe subsystem's name: "subsystem1". */
int dbt_anonymous_subsystem(struct dbt_anonymous *a, const char *text, struct dbt_buf *out);

#endif
