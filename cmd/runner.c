#include "cmd/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void close_pair(int pair[2])
{
	(void)close(pair[0]);
	(void)close(pair[1]);
}

/* In the child: waits for the word, then becomes the command. Signals that dbtier ignores are the command's business
 * again. */
_Noreturn static void become(char **words, int go, int report)
{
	static const int ignored[] = { SIGPIPE, SIGIO, SIGXFSZ };
	int code;
	char c;

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_DFL);
	/* The end of the pipe is the word; without the observer there is nobody to run for. */
	while (read(go, &c, 1) < 0 && errno == EINTR)
		;
	(void)execvp(words[0], words);
	code = errno;
	(void)!write(report, &code, sizeof(code));
	_exit(127);
}

/* The child waits at the other end of go; what exec says comes through report. */
static int split(struct runner *r, const int go[2], const int report[2])
{
	r->pid = fork();
	if (r->pid < 0)
		return -errno;
	if (r->pid == 0) {
		(void)close(go[1]);
		(void)close(report[0]);
		become(r->words, go[0], report[1]);
	}
	return 0;
}

int runner_start(struct runner *r, char *const *words, size_t n_words, const struct dbt_sys *sys,
                 struct dbt_err *err)
{
	int go[2] = { -1, -1 }, report[2] = { -1, -1 }, code;

	*r = (struct runner){ .sys = sys, .go = -1, .report = -1 };
	r->words = calloc(n_words + 1, sizeof(*r->words));
	if (!r->words)
		return dbt_err_sys(err, -ENOMEM, "cannot run '%s'", words[0]);
	memcpy(r->words, words, n_words * sizeof(*words));
	code = pipe2(go, O_CLOEXEC) < 0 ? -errno : 0;
	if (code == 0 && pipe2(report, O_CLOEXEC) < 0) {
		code = -errno;
		close_pair(go);
	} else if (code == 0) {
		code = split(r, go, report);
		if (code < 0) {
			close_pair(go);
			close_pair(report);
		}
	}
	if (code < 0) {
		free(r->words);
		r->words = NULL;
		return dbt_err_sys(err, code, "cannot run '%s'", words[0]);
	}
	(void)close(go[0]);
	(void)close(report[1]);
	r->go = go[1];
	r->report = report[0];
	return 0;
}

static void begin(struct runner *r)
{
	(void)close(r->go);
	r->go = -1;
	r->begin_ns = r->sys->now_ns();
}

bool runner_poll(struct runner *r)
{
	int status;
	pid_t pid;

	if (r->ended)
		return true;
	if (r->go >= 0)
		begin(r);
	pid = waitpid(r->pid, &status, WNOHANG);
	if (pid == 0 || (pid < 0 && errno == EINTR))
		return false;
	r->ended = true;
	r->seconds = (double)(r->sys->now_ns() - r->begin_ns) / 1e9;
	if (pid < 0)
		return true;
	r->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	if (read(r->report, &r->failed, sizeof(r->failed)) != (ssize_t)sizeof(r->failed))
		r->failed = 0;
	return true;
}

void runner_release(struct runner *r)
{
	/* Never begun: it ends without having run anything. */
	if (r->go >= 0 && r->pid > 0) {
		(void)kill(r->pid, SIGKILL);
		(void)waitpid(r->pid, NULL, 0);
		(void)close(r->go);
	}
	if (r->report >= 0)
		(void)close(r->report);
	r->go = r->report = -1;
	free(r->words);
	r->words = NULL;
}
