/* Names are taken out of a recording. */
#include "cmd/recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int replace(char **text, const char *word, size_t number, const char *ending)
{
	char *new = NULL;

	if (!*text)
		return 0;
	if (asprintf(&new, "%s-%zu%s", word, number, ending) < 0)
		return -ENOMEM;
	free(*text);
	*text = new;
	return 0;
}

/* "/data/lab/nr.00.psq" has the ending ".psq"; one that is long may be a name. */
static const char *ending_of(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL,
		   *dot = slash ? strrchr(slash, '.') : NULL;

	return dot && dot != slash + 1 && strlen(dot) <= 10 ? dot : "";
}

/* Equal users stay equal. */
static int mask_users(struct dbt_observation *obs)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < obs->processes.n; i++) {
		struct dbt_obs_process *p = &obs->processes.items[i];

		if (p->uid == 0)
			continue;
		for (size_t k = i + 1; k < obs->processes.n; k++)
			if (obs->processes.items[k].uid == p->uid)
				obs->processes.items[k].uid = (uint32_t)(1000000 + i);
		if (p->uid < 1000000)
			p->uid = (uint32_t)(1000000 + i);
		r = replace(&p->user, "user", p->uid - 1000000 + 1, "");
	}
	return r;
}

static int mask_place(struct dbt_obs_place *p, size_t i)
{
	/* A device below /dev is named by the kernel or by the administrator: the stack tells what matters. */
	int r = replace(&p->mount, "/mount", i + 1, "");
	char *layer;

	if (r == 0)
		r = replace(&p->source, "source", i + 1, "");
	/* "crypt NAME", "lvm NAME", "nfs NAME": words with a slash, a colon or a dash are names somebody gave. */
	for (layer = p->stack; r == 0 && layer && *layer; layer++)
		if (strchr("/:-", *layer)) {
			char *start = layer, *end = layer + strcspn(layer, " <");

			while (start > p->stack && start[-1] != ' ')
				start--;
			memset(start, 'x', (size_t)(end - start));
			layer = end - 1;
		}
	return r;
}

/* The first two words: an interpreter and its script. Which jobs run the same one is what a diagnosis groups by. */
static size_t script_len(const char *command)
{
	size_t len = strcspn(command, " ");

	return command[len] ? len + 1 + strcspn(command + len + 1, " ") : len;
}

static int mask_commands(struct dbt_observation *obs)
{
	size_t *same = calloc(obs->processes.n + 1, sizeof(*same));
	int r = same ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < obs->processes.n; i++) {
		const char *mine = obs->processes.items[i].command;

		for (same[i] = 0; same[i] < i; same[i]++) {
			const char *other = obs->processes.items[same[i]].command;

			if (script_len(mine) == script_len(other) &&
			    strncmp(mine, other, script_len(mine)) == 0)
				break;
		}
	}
	for (size_t i = 0; r == 0 && i < obs->processes.n; i++)
		r = replace(&obs->processes.items[i].command, "command", same[i] + 1, "");
	free(same);
	return r;
}

int recording_mask(struct dbt_observation *obs)
{
	int r = mask_users(obs);

	if (r == 0)
		r = mask_commands(obs);
	for (size_t i = 0; r == 0 && i < obs->places.n; i++)
		r = mask_place(&obs->places.items[i], i);
	for (size_t i = 0; r == 0 && i < obs->files.n; i++) {
		struct dbt_obs_file *f = &obs->files.items[i];
		char ending[16];

		(void)snprintf(ending, sizeof(ending), "%s", ending_of(f->path));
		r = replace(&f->path, "/masked/file", i + 1, ending);
		if (r == 0)
			r = replace(&f->database, "database", i + 1, ending);
	}
	return r == 0 ? replace(&obs->command, "command", 0, "") : r;
}
