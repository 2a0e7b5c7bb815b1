#include "cmd/signals.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static atomic_int caught;

static void on_stop(int signo)
{
	atomic_store_explicit(&caught, signo, memory_order_relaxed);
}

static void on_signal(int signo, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	(void)sigemptyset(&action.sa_mask);
	(void)sigaction(signo, &action, NULL);
}

/* nohup and a shell's background jobs ignore a signal on purpose: it stays ignored. */
static void stop_on(int signo)
{
	struct sigaction old = { 0 };

	if (sigaction(signo, NULL, &old) == 0 && old.sa_handler == SIG_IGN)
		return;
	/* SA_RESETHAND: the second one kills. SA_RESTART stays off: a blocking call returns EINTR
	 * and its loop looks at the flag. */
	on_signal(signo, on_stop, (int)SA_RESETHAND);
}

void signals_init(void)
{
	stop_on(SIGINT);
	stop_on(SIGTERM);
	stop_on(SIGHUP);
	/* A reader that went away must not end a promotion half way: writes fail with EPIPE. */
	on_signal(SIGPIPE, SIG_IGN, 0);
	/* A broken file lease is announced by SIGIO, whose default is to kill. */
	on_signal(SIGIO, SIG_IGN, 0);
	/* A limit on file sizes then shows as EFBIG, which is reported and undone. */
	on_signal(SIGXFSZ, SIG_IGN, 0);
}

atomic_int *signals_cancel(void)
{
	return &caught;
}

void signals_die_of_pipe(void)
{
	sigset_t set;

	on_signal(SIGPIPE, SIG_DFL, 0);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGPIPE);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)raise(SIGPIPE);
	_exit(128 + SIGPIPE);
}
