/* Runs a command on an older kernel, or on filesystems that can less: a seccomp filter makes system calls fail as they
 * fail there.
 *
 *	runold FEATURE... -- COMMAND ARGS...
 *
 * The features that are taken away are listed in rules[] below. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NR_CACHESTAT = 451, NO_ARG = -1, MAX_RULES = 16 };

struct rule {
	const char *feature;
	unsigned nr;
	int arg; /* only calls whose argument of this number has one of these bits, or is exactly this */
	unsigned bits;
	bool exact;
	unsigned code;
};

static const struct rule rules[] = {
	{ "exchange", SYS_renameat2, 4, RENAME_EXCHANGE, false, EINVAL },
	{ "noreplace", SYS_renameat2, 4, RENAME_NOREPLACE, false, EINVAL },
	{ "renameat2", SYS_renameat2, NO_ARG, 0, false, ENOSYS },
	{ "openat2", SYS_openat2, NO_ARG, 0, false, ENOSYS },
	{ "cachestat", NR_CACHESTAT, NO_ARG, 0, false, ENOSYS },
	/* glibc then asks fstatat: no mount ids, birth times or attributes, as statx does where it cannot tell */
	{ "statx", SYS_statx, NO_ARG, 0, false, ENOSYS },
	{ "direct", SYS_openat, 2, O_DIRECT, false, EINVAL },
	{ "lease", SYS_fcntl, 1, F_SETLEASE, true, EINVAL },
	{ "fallocate", SYS_fallocate, NO_ARG, 0, false, EOPNOTSUPP },
};

static size_t add_rule(struct sock_filter *f, const struct rule *r)
{
	const unsigned arg = offsetof(struct seccomp_data, args) + 8 * (unsigned)r->arg;
	const struct sock_filter with_arg[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, r->nr, 0, 3),
		/* The low half of the argument, on machines that have it first. */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, arg),
		BPF_JUMP(BPF_JMP | (r->exact ? BPF_JEQ : BPF_JSET) | BPF_K, r->bits, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | r->code),
	};
	const struct sock_filter without_arg[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, r->nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | r->code),
	};

	if (r->arg == NO_ARG) {
		memcpy(f, without_arg, sizeof(without_arg));
		return sizeof(without_arg) / sizeof(*f);
	}
	memcpy(f, with_arg, sizeof(with_arg));
	return sizeof(with_arg) / sizeof(*f);
}

static const struct rule *find_rule(const char *feature)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		if (strcmp(rules[i].feature, feature) == 0)
			return &rules[i];
	return NULL;
}

int main(int argc, char **argv)
{
	struct sock_filter filter[MAX_RULES * 5 + 1];
	struct sock_fprog program = { .filter = filter };
	size_t n = 0;
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const struct rule *rule = find_rule(argv[i]);

		if (!rule || i > MAX_RULES) {
			(void)fprintf(stderr, "runold: no feature '%s'\n", argv[i]);
			return 2;
		}
		n += add_rule(&filter[n], rule);
	}
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = (unsigned short)n;
	if (i + 1 >= argc)
		return 2;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) {
		perror("runold");
		return 77;
	}
	(void)execvp(argv[i + 1], &argv[i + 1]);
	perror(argv[i + 1]);
	return 127;
}
