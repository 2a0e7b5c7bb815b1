/* A table of system calls that goes wrong on demand. Give it to a context, arm it, run the code:
 *
 *	ctx.sys = &fault_sys;
 *	for (unsigned n = 1;; n++) {            // fail call 1, then 2, ... until none fails
 *		tree_reset();
 *		fault_reset();
 *		fault_arm(n, EIO);
 *		r = dbt_swap_...(&ctx, ...);
 *		assert_one_of_the_allowed_states();
 *		if (!fault_fired())
 *			break;
 *		assert_int_equal(r, -EIO);
 *	}
 *
 * There is one such table in a test program, shared by its threads; every call goes through to the
 * kernel unless told otherwise. The clocks and random bytes never count as calls. Nothing is freed
 * at the end but by fault_reset. */
#ifndef TESTS_SUPPORT_FAULT_H
#define TESTS_SUPPORT_FAULT_H

#include "sys/sys.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern const struct dbt_sys fault_sys;

enum fault_call {
	FAULT_OPENAT,
	FAULT_OPENAT2,
	FAULT_CLOSE, /* fails after closing, as the kernel does */
	FAULT_STATX,
	FAULT_PREAD,
	FAULT_PWRITE,
	FAULT_FSYNC,
	FAULT_FDATASYNC,
	FAULT_SYNCFS,
	FAULT_FALLOCATE,
	FAULT_FTRUNCATE,
	FAULT_RENAMEAT2,
	FAULT_LINKAT,
	FAULT_SYMLINKAT,
	FAULT_UNLINKAT,
	FAULT_MKDIRAT,
	FAULT_FCHOWNAT,
	FAULT_FCHMOD,
	FAULT_UTIMENSAT,
	FAULT_FSETXATTR,
	FAULT_LEASE,
	FAULT_N_CALLS,

	FAULT_ANY = -1,     /* whatever the call */
	FAULT_CHANGES = -2, /* those that change something on disk */
};

/* Forgets everything: counters, failures, hidden features, record, hook, fake clock. */
void fault_reset(void);

/* --- failures --- */

/* The n-th call (from 1, counted from fault_reset) fails with this errno instead of being made. */
void fault_arm(unsigned n, int code);

/* The n-th call of one kind, or of a group (FAULT_ANY, FAULT_CHANGES). */
void fault_arm_call(enum fault_call call, unsigned n, int code);

/* As fault_arm_call, and every later call of that kind or group fails as well: the device is gone,
 * undoing fails too. */
void fault_arm_from(enum fault_call call, unsigned n, int code);

/* An armed failure was delivered. */
bool fault_fired(void);

/* Calls made (or failed) so far of one kind or group. */
unsigned fault_count(enum fault_call call);

/* --- awkward kernels --- */

/* pread and pwrite move at most so many bytes a call; 0: as asked. Give a multiple of the alignment
 * where O_DIRECT is in use. */
void fault_short(size_t max_bytes);

/* Every n-th pread and pwrite is interrupted (EINTR) before it does anything; 0: none. Not 1. */
void fault_eintr(unsigned every);

enum fault_feature {
	FAULT_NO_EXCHANGE = 1 << 0,  /* renameat2 with RENAME_EXCHANGE: EINVAL */
	FAULT_NO_NOREPLACE = 1 << 1, /* ... with RENAME_NOREPLACE: EINVAL */
	FAULT_NO_OPENAT2 = 1 << 2,   /* ENOSYS */
	FAULT_NO_LEASE = 1 << 3,     /* EINVAL */
	FAULT_NO_DIRECT = 1 << 4,    /* open with O_DIRECT: EINVAL */
	FAULT_NO_FALLOCATE = 1 << 5, /* EOPNOTSUPP */
	FAULT_NO_LINK = 1 << 6,      /* linkat: EPERM */
	/* RENAME_EXCHANGE is accepted and done as a plain rename, as some FUSE filesystems do */
	FAULT_FALSE_EXCHANGE = 1 << 7,
};
void fault_hide(unsigned features);

/* The clocks stand at this value until set again; 0: the real ones. */
void fault_clock(uint64_t ns);

/* --- interference --- */

/* Just before the n-th call of a kind or group, hook runs (once): a test's chance to be the other
 * process that comes in between. The hook must not use this table. */
void fault_before(enum fault_call call, unsigned n, void (*hook)(void *data), void *data);

/* --- what was done --- */

/* The calls that change something, in order, a line each: the call's name, the names it is about
 * (without directories; a directory has a slash behind it), the flags that matter, and "!EIO" when
 * it failed:
 *
 *	openat .psc.dmnd.dbtier-1f.part CREAT
 *	pwrite .psc.dmnd.dbtier-1f.part
 *	fsync fast/
 *	renameat2 .psc.dmnd.dbtier-original psc.dmnd EXCHANGE
 *
 * Lines that repeat the one before are left out. Borrowed until the next call of anything here. */
const char *fault_record(void);

/* The record has lines that match these patterns (fnmatch, blanks and slashes are ordinary), in
 * this order, with anything in between. The array ends with NULL. Returns NULL, or the first
 * pattern that was not found behind the ones before. */
const char *fault_missing(const char *const *patterns);

#endif
