#include "cmd/screenful.h"

#include "cmd/text.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool window(int fd, struct winsize *ret)
{
	return isatty(fd) && ioctl(fd, TIOCGWINSZ, ret) == 0 && ret->ws_col > 0;
}

unsigned screen_width(FILE *out)
{
	struct winsize size;

	return window(fileno(out), &size) ? size.ws_col : 0;
}

int screenful_begin(struct screenful *s, bool plain, struct dbt_err *err)
{
	struct termios raw;

	(void)err;
	*s = (struct screenful){ .terminal = isatty(STDOUT_FILENO) == 1 && !plain, .plain = plain };
	if (s->terminal && isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &s->saved) == 0) {
		raw = s->saved;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		raw.c_cc[VMIN] = 0;
		raw.c_cc[VTIME] = 0;
		s->keys = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
	}
	return 0;
}

void screenful_end(struct screenful *s)
{
	if (s->keys)
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &s->saved);
	s->keys = false;
	free(s->text);
	s->text = NULL;
}

bool screenful_wants_end(void *data)
{
	struct screenful *s = data;
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	char key;

	while (s->keys && !s->quit && poll(&in, 1, 0) == 1 && (in.revents & POLLIN) &&
	       read(STDIN_FILENO, &key, 1) == 1)
		s->quit = key == 'q' || key == 'Q' || key == 4;
	/* Nobody reads any more. */
	return s->quit || ferror(stdout);
}

FILE *screenful_open(struct screenful *s, struct dbt_err *err)
{
	struct winsize size;

	/* Asked anew each time: a window changes. */
	s->width = s->height = 0;
	if (s->terminal && window(STDOUT_FILENO, &size)) {
		s->width = size.ws_col;
		s->height = size.ws_row;
	}
	free(s->text);
	s->text = NULL;
	s->out = open_memstream(&s->text, &s->len);
	if (!s->out)
		(void)dbt_err_sys(err, -errno, "cannot draw the screen");
	return s->out;
}

/* One line, cut at the edge: a character is one column, escape sequences are none. */
static void put_line(const struct screenful *s, const char *line, size_t len)
{
	unsigned column = 0;

	for (size_t i = 0; i < len;) {
		size_t n = text_utf8_len(line + i, len - i);

		n = n ? n : 1;
		if (line[i] == '\033') {
			n = strcspn(line + i, "m") + 1;
			n = n < len - i ? n : len - i;
		} else if (s->width > 0 && column++ >= s->width) {
			i += n;
			continue;
		}
		(void)fwrite(line + i, 1, n, stdout);
		i += n;
	}
}

void screenful_show(struct screenful *s)
{
	const char *line;
	unsigned lines = 0;

	(void)fclose(s->out);
	s->out = NULL;
	if (!s->text)
		return;
	line = s->text;
	if (s->terminal)
		(void)fputs("\033[H", stdout);
	while (*line && (s->height == 0 || lines + 1 < s->height)) {
		size_t len = strcspn(line, "\n");

		put_line(s, line, len);
		/* What the last screen had to the right of it goes away. */
		(void)fputs(s->terminal ? "\033[K\n" : "\n", stdout);
		line += len + (line[len] == '\n');
		lines++;
	}
	if (s->terminal)
		(void)fputs("\033[J", stdout);
	else if (!s->plain)
		(void)fputc('\n', stdout);
	(void)fflush(stdout);
}
