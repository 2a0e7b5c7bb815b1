/* Reads one file over and over while something else moves it, and counts what went wrong.
 *
 *	runreaders N FILE REFERENCE
 *
 * N processes open FILE by its path, read it whole and compare every byte with REFERENCE, until SIGTERM. Then it
 * prints one line and ends with 0 only if no open failed and no byte was wrong:
 *
 *	readers: 4 opens: 8123 devices: 2 failed opens: 0 wrong reads: 0
 *
 * "ready" is printed once every reader has read once. devices: how many different ones FILE was found on. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_DEVICES = 4, BLOCK = 1 << 16 };

/* Shared by all processes. */
struct counts {
	atomic_bool stop;
	atomic_uint ready;
	atomic_ulong opens, failed, wrong;
	atomic_ulong devices[MAX_DEVICES]; /* 0: free */
};

static struct counts *counts;

static void on_term(int signo)
{
	(void)signo;
	atomic_store(&counts->stop, true);
}

static void die(const char *what)
{
	(void)fprintf(stderr, "runreaders: %s: %s\n", what, strerror(errno));
	exit(2);
}

static char *load(const char *path, size_t *ret_len)
{
	struct stat st;
	size_t len = 0;
	char *data;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0 || !(data = malloc((size_t)st.st_size + 1)))
		die(path);
	while (len < (size_t)st.st_size) {
		ssize_t got = read(fd, data + len, (size_t)st.st_size - len);

		if (got <= 0)
			die(path);
		len += (size_t)got;
	}
	(void)close(fd);
	*ret_len = len;
	return data;
}

static void note_device(unsigned long device)
{
	for (size_t i = 0; i < MAX_DEVICES; i++) {
		unsigned long expected = 0;

		if (atomic_compare_exchange_strong(&counts->devices[i], &expected, device) ||
		    expected == device)
			return;
	}
}

/* Whole and right? */
static bool read_once(int fd, const char *reference, size_t len)
{
	char block[BLOCK];
	size_t at = 0;
	ssize_t got;

	while ((got = read(fd, block, sizeof(block))) > 0) {
		if ((size_t)got > len - at || memcmp(block, reference + at, (size_t)got) != 0)
			return false;
		at += (size_t)got;
	}
	return got == 0 && at == len;
}

static void read_on(const char *path, const char *reference, size_t len)
{
	bool first = true;

	while (!atomic_load(&counts->stop)) {
		struct stat st;
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		if (fd < 0) {
			if (atomic_fetch_add(&counts->failed, 1) == 0)
				(void)fprintf(stderr, "runreaders: open: %s\n", strerror(errno));
		} else {
			if (fstat(fd, &st) == 0)
				note_device((unsigned long)st.st_dev);
			if (!read_once(fd, reference, len))
				atomic_fetch_add(&counts->wrong, 1);
			(void)close(fd);
		}
		atomic_fetch_add(&counts->opens, 1);
		if (first)
			atomic_fetch_add(&counts->ready, 1);
		first = false;
	}
}

static void start(unsigned n, const char *path, const char *reference, size_t len)
{
	for (unsigned i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (pid > 0)
			continue;
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)signal(SIGTERM, SIG_IGN);
		read_on(path, reference, len);
		_exit(0);
	}
}

static int report(unsigned n)
{
	unsigned devices = 0;

	for (size_t i = 0; i < MAX_DEVICES; i++)
		devices += atomic_load(&counts->devices[i]) != 0;
	(void)printf("readers: %u opens: %lu devices: %u failed opens: %lu wrong reads: %lu\n", n,
	             atomic_load(&counts->opens), devices, atomic_load(&counts->failed),
	             atomic_load(&counts->wrong));
	return atomic_load(&counts->failed) || atomic_load(&counts->wrong);
}

int main(int argc, char **argv)
{
	const struct timespec nap = { .tv_nsec = 10000000 };
	unsigned n = argc == 4 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	struct sigaction action = { .sa_handler = on_term };
	char *reference;
	size_t len;

	if (n == 0) {
		(void)fputs("usage: runreaders N FILE REFERENCE\n", stderr);
		return 2;
	}
	counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	              0);
	if (counts == MAP_FAILED)
		die("mmap");
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)sigaction(SIGTERM, &action, NULL);
	reference = load(argv[3], &len);
	start(n, argv[2], reference, len);
	while (!atomic_load(&counts->stop) && atomic_load(&counts->ready) < n)
		(void)nanosleep(&nap, NULL);
	(void)puts("ready");
	(void)fflush(stdout);
	while (!atomic_load(&counts->stop))
		(void)nanosleep(&nap, NULL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	free(reference);
	return report(n);
}
