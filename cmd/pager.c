#include "cmd/pager.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHELL_FOUND_NOTHING = 127 };

static unsigned count_lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static bool is_too_long(const char *text, FILE *out)
{
	struct winsize size = { 0 };

	return isatty(fileno(out)) && ioctl(fileno(out), TIOCGWINSZ, &size) == 0 &&
	       size.ws_row > 0 && count_lines(text) >= size.ws_row;
}

static const char *find_pager(void)
{
	const char *pager = getenv("PAGER");

	if (!pager)
		return "less";
	return *pager == '\0' || strcmp(pager, "cat") == 0 ? NULL : pager;
}

/* Was there a pager to show it? One that its user left early ends by a signal or as it likes. */
static bool page(const char *pager, const char *text)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
	FILE *pipe;
	int status;

	/* less: leave what fits on the screen, pass colors through, end at once when everything fits. */
	(void)setenv("LESS", "FRX", 0);
	(void)sigaction(SIGPIPE, &ignore, &before);
	pipe = popen(pager, "w");
	/* What a pager that is gone did not take must not make its exit status an error of ours. */
	if (pipe && (fputs(text, pipe) == EOF || fflush(pipe) != 0))
		__fpurge(pipe);
	status = pipe ? pclose(pipe) : -1;
	(void)sigaction(SIGPIPE, &before, NULL);
	return status >= 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == SHELL_FOUND_NOTHING);
}

void pager_print(const char *text, FILE *out)
{
	const char *pager = is_too_long(text, out) ? find_pager() : NULL;

	(void)fflush(out);
	if (!pager || !page(pager, text))
		(void)fputs(text, out);
}
