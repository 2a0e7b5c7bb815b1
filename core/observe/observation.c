#include "observe/observation.h"

#include "base/vec.h"

#include <stdlib.h>

void dbt_observation_init(struct dbt_observation *obs)
{
	*obs = (struct dbt_observation){ .target = DBT_OBS_NONE };
	obs->machine.busy = obs->machine.iowait = obs->machine.idle = obs->machine.steal = -1;
	obs->machine.io_some = obs->machine.io_full = -1;
	obs->machine.memory_some = obs->machine.memory_full = -1;
}

static void place_release(struct dbt_obs_place *p)
{
	free(p->mount);
	free(p->source);
	free(p->fstype);
	free(p->stack);
	free(p->device);
	for (size_t i = 0; i < p->n_disks; i++)
		free(p->disks[i]);
	free(p->disks);
}

void dbt_observation_release(struct dbt_observation *obs)
{
	for (size_t i = 0; i < obs->devices.n; i++)
		free(obs->devices.items[i].name);
	for (size_t i = 0; i < obs->places.n; i++)
		place_release(&obs->places.items[i]);
	for (size_t i = 0; i < obs->processes.n; i++) {
		free(obs->processes.items[i].user);
		free(obs->processes.items[i].name);
		free(obs->processes.items[i].command);
	}
	for (size_t i = 0; i < obs->files.n; i++) {
		free(obs->files.items[i].path);
		free(obs->files.items[i].database);
		free(obs->files.items[i].format);
	}
	free(obs->devices.items);
	free(obs->places.items);
	free(obs->processes.items);
	free(obs->files.items);
	free(obs->uses.items);
	free(obs->kernel);
	free(obs->untraced);
	free(obs->command);
	dbt_observation_init(obs);
}

struct dbt_obs_file *dbt_observation_file(struct dbt_observation *obs, uint64_t devno, uint64_t ino)
{
	struct dbt_obs_file *f;

	for (size_t i = 0; i < obs->files.n; i++)
		if (obs->files.items[i].ino == ino && obs->files.items[i].devno == devno)
			return &obs->files.items[i];
	f = dbt_vec_push(&obs->files);
	if (f)
		*f = (struct dbt_obs_file){ .devno = devno,
			                    .ino = ino,
			                    .place = DBT_OBS_NONE,
			                    .cached_before = -1,
			                    .cached_after = -1 };
	return f;
}

struct dbt_obs_use *dbt_observation_use(struct dbt_observation *obs, size_t process, size_t file)
{
	struct dbt_obs_use *u;

	for (size_t i = 0; i < obs->uses.n; i++)
		if (obs->uses.items[i].process == process && obs->uses.items[i].file == file)
			return &obs->uses.items[i];
	u = dbt_vec_push(&obs->uses);
	if (u)
		*u = (struct dbt_obs_use){ .process = process, .file = file };
	return u;
}

size_t dbt_observation_process(const struct dbt_observation *obs, int pid)
{
	for (size_t i = 0; i < obs->processes.n; i++)
		if (obs->processes.items[i].pid == pid)
			return i;
	return DBT_OBS_NONE;
}
