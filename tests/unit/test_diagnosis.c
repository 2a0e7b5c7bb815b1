/* From an observation to a verdict: pure, so every case is put together here. What real tools gave is replayed from
 * recordings, in cli/diagnose.sh. */
#include "base/vec.h"
#include "cmd/recording.h"
#include "observe/diagnosis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MB = 1000000, TICKS = 500 };

/* Ten seconds on four idle CPUs with a hard disk that gives 200 random reads and 100 MB/s, and an NVMe. */
static struct dbt_observation quiet_machine(void)
{
	struct dbt_observation obs;
	struct dbt_obs_place *p;
	struct dbt_obs_device *d;

	dbt_observation_init(&obs);
	obs.seconds = 10;
	obs.traced = true;
	obs.traced_share = 1;
	obs.machine = (struct dbt_obs_machine){ .cpus = 4,
		                                .busy = 0.05,
		                                .iowait = 0.2,
		                                .idle = 0.75,
		                                .memory_bytes = 32000ULL * MB,
		                                .available_bytes = 1000ULL * MB };
	for (unsigned i = 0; i < 2; i++) {
		p = dbt_vec_push(&obs.places);
		assert_non_null(p);
		p->devno = i + 1;
		p->mount = strdup(i ? "/fast" : "/slow");
		p->source = strdup("/dev/x");
		p->fstype = strdup("ext4");
		p->stack = strdup("ext4 < disk");
		p->disks = calloc(1, sizeof(*p->disks));
		p->disks[p->n_disks++] = strdup(i ? "nvme0n1" : "sda");
		p->tier = i ? DBT_TIER_NVME : DBT_TIER_HDD;
		p->speeds.random1.iops = i ? 10000 : 180;
		p->speeds.random4.iops = i ? 40000 : 200;
		p->speeds.stream1.rate_bytes_s = i ? 2000ULL * MB : 150ULL * MB;
		p->speeds.stream4.rate_bytes_s = i ? 3000ULL * MB : 100ULL * MB;
	}
	d = dbt_vec_push(&obs.devices);
	assert_non_null(d);
	d->name = strdup("sda");
	d->disk = true;
	obs.target = 1;
	return obs;
}

/* A process that computes and waits for these shares of its time. */
static size_t add_process(struct dbt_observation *obs, const char *name, double running,
                          double blocked)
{
	struct dbt_obs_process *p = dbt_vec_push(&obs->processes);

	assert_non_null(p);
	p->pid = (int)(100 + obs->processes.n);
	p->name = strdup(name);
	p->user = strdup("alice");
	p->command = strdup(name);
	p->threads = 1;
	p->seconds = obs->seconds;
	p->ticks = TICKS;
	p->ticks_running = (unsigned)(running * TICKS + 0.5);
	p->ticks_blocked = (unsigned)(blocked * TICKS + 0.5);
	p->cpu_ns = p->top_thread_ns = (uint64_t)(running * obs->seconds * 1e9);
	p->has_io = p->has_files = true;
	return obs->processes.n - 1;
}

/* It reads bytes of a file of the slow side in so many requests, of which a share jumps. */
static struct dbt_obs_file *add_reads(struct dbt_observation *obs, size_t process, uint64_t ino,
                                      uint64_t bytes, uint64_t requests, double jumps)
{
	struct dbt_obs_file *f = dbt_observation_file(obs, 1, ino);
	struct dbt_obs_reads reads = { .bytes = bytes,
		                       .requests = requests,
		                       .jumps = (uint64_t)(jumps * (double)requests) };
	struct dbt_obs_use *u;
	char path[64];

	assert_non_null(f);
	(void)snprintf(path, sizeof(path), "/slow/db/f%u.db", (unsigned)ino);
	if (!f->path)
		f->path = strdup(path);
	f->size_bytes = 40000ULL * MB;
	f->place = 0;
	f->how |= DBT_OBS_OPEN;
	f->reads.bytes += reads.bytes;
	f->reads.requests += reads.requests;
	f->reads.jumps += reads.jumps;
	u = dbt_observation_use(obs, process, (size_t)(f - obs->files.items));
	assert_non_null(u);
	u->how = DBT_OBS_OPEN;
	u->reads = reads;
	obs->processes.items[process].read_bytes += bytes;
	obs->devices.items[0].reads += requests;
	obs->devices.items[0].read_bytes += bytes;
	return f;
}

static void disk_busy(struct dbt_observation *obs, double share)
{
	obs->devices.items[0].busy_ns = (uint64_t)(share * obs->seconds * 1e9);
	obs->devices.items[0].read_ns = obs->devices.items[0].queue_ns =
		obs->devices.items[0].busy_ns;
}

static const struct dbt_remedy *remedy(const struct dbt_diagnosis *d, enum dbt_remedy_kind kind)
{
	for (size_t i = 0; i < d->remedies.n; i++)
		if (d->remedies.items[i].kind == kind)
			return &d->remedies.items[i];
	return NULL;
}

static void judge(struct dbt_observation *obs, enum dbt_diag_kind kind, struct dbt_diagnosis *ret)
{
	assert_int_equal(dbt_diagnose(obs, ret), 0);
	if (ret->kind != kind)
		fail_msg("%s, not %s: %s", dbt_diag_kind_name(ret->kind), dbt_diag_kind_name(kind),
		         ret->text);
	/* What is no matter of storage never advises a move. */
	if (kind != DBT_DIAG_STORAGE)
		assert_null(remedy(ret, DBT_REMEDY_PROMOTE));
}

static void end(struct dbt_observation *obs, struct dbt_diagnosis *d)
{
	dbt_diagnosis_release(d);
	dbt_observation_release(obs);
}

static void assert_near(double got, double wanted, double part)
{
	if (got < wanted * (1 - part) || got > wanted * (1 + part))
		fail_msg("%g is not %g within %g", got, wanted, part);
}

static void test_random_reads_of_one_job(void **state)
{
	struct dbt_observation obs = quiet_machine();
	struct dbt_diagnosis d;
	const struct dbt_remedy *r;
	size_t p = add_process(&obs, "search", 0.1, 0.9);

	(void)state;
	add_reads(&obs, p, 7, 1800ULL * 4096, 1800, 0.95)->declared = DBT_CLASS_RANDOM_PREAD;
	disk_busy(&obs, 0.9);
	judge(&obs, DBT_DIAG_STORAGE, &d);
	assert_non_null(strstr(d.text, "search (101) waits 90 %"));
	assert_non_null(strstr(d.text, "f7.db, read random-pread"));
	assert_int_equal(d.files.items[d.file].class, DBT_CLASS_RANDOM_PREAD);
	assert_true(d.files.items[d.file].fits_declared);
	r = remedy(&d, DBT_REMEDY_PROMOTE);
	assert_non_null(r);
	/* Of ten seconds one is computed; 1,800 reads take 0.18 s on the other side. */
	assert_near(r->factor, 10 / 1.18, 0.03);
	assert_non_null(r->basis);
	r = remedy(&d, DBT_REMEDY_JOBS);
	assert_non_null(r);
	assert_near(r->jobs_now, 1.1, 0.1);
	assert_near(r->jobs_then, 4 / (1 / 1.18), 0.1); /* four CPUs, each 85 % used by a job */
	end(&obs, &d);
}

static void test_four_streams(void **state)
{
	struct dbt_observation obs = quiet_machine();
	const struct dbt_remedy *r;
	struct dbt_diagnosis d;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		add_reads(&obs, add_process(&obs, "diamond", 0.2, 0.8), 10 + i, 250ULL * MB, 250,
		          0.02)
			->declared = DBT_CLASS_STREAM;
	disk_busy(&obs, 1);
	judge(&obs, DBT_DIAG_STORAGE, &d);
	assert_non_null(strstr(d.text, "diamond x 4 waits 80 %"));
	assert_non_null(strstr(d.text, "read stream"));
	assert_non_null(strstr(d.text, "4 interleaved readers"));
	r = remedy(&d, DBT_REMEDY_PROMOTE);
	assert_non_null(r);
	/* 250 MB at a quarter of 3 GB/s, and two seconds of computing. */
	assert_near(r->factor, 10 / (2 + 250.0 / 750), 0.03);
	end(&obs, &d);
}

static void test_a_mapping_that_is_declared_otherwise(void **state)
{
	struct dbt_observation obs = quiet_machine();
	struct dbt_obs_file *f;
	struct dbt_diagnosis d;

	(void)state;
	f = add_reads(&obs, add_process(&obs, "kraken2", 0.1, 0.9), 7, 1500ULL * 16384, 1500, 0.9);
	f->declared = DBT_CLASS_LOAD_ALL;
	f->how = DBT_OBS_MAPPED;
	disk_busy(&obs, 0.95);
	judge(&obs, DBT_DIAG_STORAGE, &d);
	assert_int_equal(d.files.items[d.file].class, DBT_CLASS_RANDOM_MMAP);
	assert_non_null(strstr(d.text, "read random-mmap (declared: load-all)"));
	end(&obs, &d);
}

static void test_what_fits_in_memory_is_warmed(void **state)
{
	struct dbt_observation obs = quiet_machine();
	struct dbt_diagnosis d;

	(void)state;
	add_reads(&obs, add_process(&obs, "search", 0.1, 0.9), 7, 1800ULL * 4096, 1800, 0.95)
		->size_bytes = 500ULL * MB;
	disk_busy(&obs, 0.9);
	judge(&obs, DBT_DIAG_STORAGE, &d);
	assert_int_equal(d.remedies.items[0].kind, DBT_REMEDY_WARM);
	end(&obs, &d);
}

static void test_without_a_measurement_there_is_no_forecast(void **state)
{
	struct dbt_observation obs = quiet_machine();
	struct dbt_diagnosis d;

	(void)state;
	add_reads(&obs, add_process(&obs, "search", 0.1, 0.9), 7, 1800ULL * 4096, 1800, 0.95);
	obs.places.items[1].speeds = (struct dbt_speeds){ 0 };
	disk_busy(&obs, 0.9);
	judge(&obs, DBT_DIAG_STORAGE, &d);
	assert_null(remedy(&d, DBT_REMEDY_PROMOTE));
	assert_non_null(remedy(&d, DBT_REMEDY_PROBE));
	end(&obs, &d);
}

static void test_no_gain_no_move(void **state)
{
	struct dbt_observation obs = quiet_machine();
	struct dbt_diagnosis d;

	(void)state;
	add_reads(&obs, add_process(&obs, "search", 0.1, 0.9), 7, 1800ULL * 4096, 1800, 0.95);
	obs.places.items[1].speeds = obs.places.items[0].speeds;
	disk_busy(&obs, 0.9);
	judge(&obs, DBT_DIAG_STORAGE, &d);
	assert_null(remedy(&d, DBT_REMEDY_PROMOTE));
	assert_non_null(remedy(&d, DBT_REMEDY_LEAVE));
	end(&obs, &d);
}

static void test_computing_is_no_stall(void **state)
{
	struct dbt_observation obs = quiet_machine();
	struct dbt_diagnosis d;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		(void)add_process(&obs, "diamond", 0.97, 0.03);
	obs.machine.busy = 0.97;
	judge(&obs, DBT_DIAG_CPU, &d);
	assert_non_null(remedy(&d, DBT_REMEDY_LEAVE));
	end(&obs, &d);
}

static void test_one_thread_at_its_limit(void **state)
{
	struct dbt_observation obs = quiet_machine();
	struct dbt_diagnosis d;
	size_t p = add_process(&obs, "jackhmmer", 0.98, 0.02);

	(void)state;
	obs.processes.items[p].threads = 4;
	add_reads(&obs, p, 7, 900ULL * MB, 900, 0);
	obs.machine.busy = 0.27;
	judge(&obs, DBT_DIAG_CPU, &d);
	assert_non_null(strstr(d.text, "one thread"));
	end(&obs, &d);
}

static void test_a_second_run_from_memory(void **state)
{
	struct dbt_observation obs = quiet_machine();
	struct dbt_obs_file *f;
	struct dbt_diagnosis d;

	(void)state;
	f = add_reads(&obs, add_process(&obs, "search", 0.95, 0), 7, 0, 0, 0);
	f->format = strdup("diamond");
	f->cached_after = 1;
	judge(&obs, DBT_DIAG_CPU, &d);
	assert_non_null(strstr(d.text, "f7.db is in memory to 100 %"));
	end(&obs, &d);
}

static void test_a_writer(void **state)
{
	struct dbt_observation obs = quiet_machine();
	struct dbt_diagnosis d;
	size_t reader = add_process(&obs, "search", 0.05, 0.9),
	       writer = add_process(&obs, "dd", 0.05, 0.8);

	(void)state;
	add_reads(&obs, reader, 7, 200ULL * 4096, 200, 0.9);
	obs.processes.items[writer].written_bytes = 900ULL * MB;
	disk_busy(&obs, 1);
	obs.devices.items[0].read_ns = 100 * MB;
	obs.devices.items[0].writes = 900;
	obs.devices.items[0].write_bytes = 900ULL * MB;
	obs.devices.items[0].write_ns = 9900ULL * MB;
	judge(&obs, DBT_DIAG_WRITES, &d);
	assert_non_null(strstr(d.text, "most of them by dd"));
	end(&obs, &d);
}

static void test_memory_that_is_too_small(void **state)
{
	struct dbt_observation obs = quiet_machine();
	struct dbt_obs_file *f;
	struct dbt_diagnosis d;

	(void)state;
	f = add_reads(&obs, add_process(&obs, "search", 0.1, 0.9), 7, 1800ULL * 4096, 1800, 0.95);
	f->reads.again_bytes = f->reads.bytes / 2;
	obs.machine.limit_bytes = 100ULL * MB;
	disk_busy(&obs, 0.9);
	judge(&obs, DBT_DIAG_MEMORY, &d);
	assert_non_null(remedy(&d, DBT_REMEDY_MEMORY));
	end(&obs, &d);
	/* The same by swapping. */
	obs = quiet_machine();
	add_reads(&obs, add_process(&obs, "search", 0.1, 0.9), 7, 1800ULL * 4096, 1800, 0.95);
	obs.machine.swapped_in_pages = 20000;
	judge(&obs, DBT_DIAG_MEMORY, &d);
	end(&obs, &d);
}

static void test_an_idle_machine(void **state)
{
	struct dbt_observation obs = quiet_machine();
	struct dbt_diagnosis d;

	(void)state;
	judge(&obs, DBT_DIAG_NOTHING, &d);
	end(&obs, &d);
	/* State D alone is no wait for a disk: vfork(2) has it, too. */
	obs = quiet_machine();
	(void)add_process(&obs, "make", 0, 1);
	judge(&obs, DBT_DIAG_NOTHING, &d);
	end(&obs, &d);
}

/* `sleep 3`, started meanwhile: one tick of seven found it at its start. */
static void test_who_only_sleeps_is_not_listed(void **state)
{
	struct dbt_observation obs = quiet_machine();
	struct dbt_obs_process *p;
	struct dbt_diagnosis d;
	size_t sleeps = add_process(&obs, "sleep", 0, 0);

	(void)state;
	p = &obs.processes.items[sleeps];
	p->seconds = 3;
	p->ticks = 7;
	p->ticks_running = 1;
	p->cpu_ns = p->top_thread_ns = MB; /* 1 ms */
	judge(&obs, DBT_DIAG_NOTHING, &d);
	assert_int_equal(d.groups.n, 0);
	end(&obs, &d);
	/* Who waits, who computes and who was asked about are. */
	obs = quiet_machine();
	(void)add_process(&obs, "waits", 0, 0.1);
	(void)add_process(&obs, "computes", 0.1, 0);
	obs.processes.items[add_process(&obs, "sleep", 0, 0)].selected = true;
	assert_int_equal(dbt_diagnose(&obs, &d), 0);
	assert_int_equal(d.groups.n, 3);
	end(&obs, &d);
}

static void test_network(void **state)
{
	struct dbt_observation obs = quiet_machine();
	struct dbt_diagnosis d;

	(void)state;
	add_reads(&obs, add_process(&obs, "search", 0.1, 0.9), 7, 1800ULL * 4096, 1800, 0.95);
	obs.places.items[0].network = true;
	judge(&obs, DBT_DIAG_NETWORK, &d);
	assert_non_null(strstr(d.text, "/dev/x (ext4)"));
	end(&obs, &d);
}

static void test_pages_that_are_written_are_no_reads(void **state)
{
	struct dbt_observation obs = quiet_machine();
	struct dbt_diagnosis d;
	size_t p = add_process(&obs, "cp", 0.3, 0.7);

	(void)state;
	add_reads(&obs, p, 7, 500ULL * MB, 500, 0);
	add_reads(&obs, p, 8, 500ULL * MB, 500, 0)->how = DBT_OBS_OPEN | DBT_OBS_WRITES;
	obs.uses.items[1].how = DBT_OBS_OPEN | DBT_OBS_WRITES;
	obs.processes.items[p].read_bytes = obs.processes.items[p].written_bytes = 500ULL * MB;
	disk_busy(&obs, 1);
	judge(&obs, DBT_DIAG_STORAGE, &d);
	assert_int_equal(d.files.n, 1);
	assert_near(d.files.items[0].bytes, 500e6, 0.01);
	end(&obs, &d);
}

/* An ordinary user: no trace, own accounts only. */
static void test_untraced(void **state)
{
	struct dbt_observation obs = quiet_machine();
	struct dbt_diagnosis d;
	size_t p = add_process(&obs, "search", 0.1, 0.9);
	struct dbt_obs_file *f = add_reads(&obs, p, 7, 1800ULL * 4096, 1800, 0);

	(void)state;
	obs.traced = false;
	obs.traced_share = 0;
	f->reads = obs.uses.items[0].reads = (struct dbt_obs_reads){ 0 };
	disk_busy(&obs, 0.9);
	judge(&obs, DBT_DIAG_STORAGE, &d);
	assert_non_null(strstr(d.text, "f7.db"));
	assert_non_null(strstr(d.files.items[0].source, "/proc/PID/io"));
	/* The device's own requests tell that they are small. */
	assert_near(remedy(&d, DBT_REMEDY_PROMOTE)->factor, 10 / 1.18, 0.05);
	end(&obs, &d);
}

/* --- recordings --- */

static void test_a_recording_gives_the_same_answer(void **state)
{
	struct dbt_observation obs = quiet_machine(), back;
	struct dbt_diagnosis d, e;
	struct dbt_err err;
	json_t *json;

	(void)state;
	add_reads(&obs, add_process(&obs, "search", 0.1, 0.9), 7, 1800ULL * 4096, 1800, 0.95)
		->declared = DBT_CLASS_LOAD_ALL;
	disk_busy(&obs, 0.9);
	json = recording_encode(&obs);
	assert_non_null(json);
	assert_int_equal(recording_decode(json, &back, &err), 0);
	judge(&obs, DBT_DIAG_STORAGE, &d);
	judge(&back, DBT_DIAG_STORAGE, &e);
	assert_string_equal(d.text, e.text);
	assert_int_equal(d.remedies.n, e.remedies.n);
	for (size_t i = 0; i < d.remedies.n; i++)
		assert_string_equal(d.remedies.items[i].text, e.remedies.items[i].text);
	json_decref(json);
	dbt_diagnosis_release(&e);
	dbt_observation_release(&back);
	end(&obs, &d);
}

static void test_masks_leave_no_name(void **state)
{
	struct dbt_observation obs = quiet_machine();
	json_t *json;
	char *text;

	(void)state;
	add_reads(&obs, add_process(&obs, "search", 0.1, 0.9), 7, 4096, 1, 0);
	obs.processes.items[0].uid = 1001;
	free(obs.processes.items[0].command);
	obs.processes.items[0].command = strdup("search --secret");
	free(obs.places.items[0].stack);
	obs.places.items[0].stack = strdup("nfs < alice-server:/export");
	assert_int_equal(recording_mask(&obs), 0);
	json = recording_encode(&obs);
	text = json_dumps(json, 0);
	assert_non_null(text);
	assert_null(strstr(text, "alice"));
	assert_null(strstr(text, "1001"));
	assert_null(strstr(text, "secret"));
	assert_null(strstr(text, "/slow"));
	assert_null(strstr(text, "export"));
	assert_null(strstr(text, "f7"));
	assert_non_null(strstr(text, ".db"));
	free(text);
	json_decref(json);
	dbt_observation_release(&obs);
}

static void refuse(const char *text, const char *why)
{
	json_t *json = json_loads(text, 0, NULL);
	struct dbt_observation obs;
	struct dbt_err err;

	assert_non_null(json);
	assert_true(recording_decode(json, &obs, &err) < 0);
	if (!strstr(err.text, why))
		fail_msg("'%s' lacks '%s'", err.text, why);
	json_decref(json);
}

static void test_what_is_no_recording(void **state)
{
	(void)state;
	refuse("{}", "no recording");
	refuse("[]", "no recording");
	refuse("{\"dbtier_recording\": 9}", "another version");
	refuse("{\"dbtier_recording\": 1}", "damaged");
	refuse("{\"dbtier_recording\": 1, \"seconds\": 1, \"machine\": {\"cpus\": 1}, "
	       "\"uses\": [{\"process\": 0, \"file\": 0}]}",
	       "damaged");
	refuse("{\"dbtier_recording\": 1, \"seconds\": 1, \"machine\": {\"cpus\": 1}, \"target\": "
	       "3}",
	       "damaged");
	refuse("{\"dbtier_recording\": 1, \"seconds\": 1, \"machine\": {\"cpus\": 1}, "
	       "\"processes\": [{\"name\": \"a\", \"user\": \"b\", \"command\": \"c\", "
	       "\"ticks\": 1, \"ticks_running\": 2}]}",
	       "damaged");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_reads_of_one_job),
		cmocka_unit_test(test_four_streams),
		cmocka_unit_test(test_a_mapping_that_is_declared_otherwise),
		cmocka_unit_test(test_what_fits_in_memory_is_warmed),
		cmocka_unit_test(test_without_a_measurement_there_is_no_forecast),
		cmocka_unit_test(test_no_gain_no_move),
		cmocka_unit_test(test_computing_is_no_stall),
		cmocka_unit_test(test_one_thread_at_its_limit),
		cmocka_unit_test(test_a_second_run_from_memory),
		cmocka_unit_test(test_a_writer),
		cmocka_unit_test(test_memory_that_is_too_small),
		cmocka_unit_test(test_an_idle_machine),
		cmocka_unit_test(test_who_only_sleeps_is_not_listed),
		cmocka_unit_test(test_network),
		cmocka_unit_test(test_pages_that_are_written_are_no_reads),
		cmocka_unit_test(test_untraced),
		cmocka_unit_test(test_a_recording_gives_the_same_answer),
		cmocka_unit_test(test_masks_leave_no_name),
		cmocka_unit_test(test_what_is_no_recording),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
