/* A screen that is drawn again and again, as top does; without a terminal one answer after the other. */
#ifndef DBT_CMD_SCREENFUL_H
#define DBT_CMD_SCREENFUL_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <termios.h>

struct screenful {
	bool terminal; /* stdout is one */
	bool keys;     /* stdin is one, and gives single keys now */
	bool quit;
	bool plain; /* no clearing and no cutting: for programs */
	struct termios saved;
	unsigned width, height; /* 0: not a terminal */
	char *text;
	size_t len;
	FILE *out;
};

int screenful_begin(struct screenful *s, bool plain, struct dbt_err *err);
void screenful_end(struct screenful *s);

/* What is written there comes to the screen with screenful_show, as much as fits. NULL with err filled. */
FILE *screenful_open(struct screenful *s, struct dbt_err *err);
void screenful_show(struct screenful *s);

/* data is the struct screenful: q was pressed. */
bool screenful_wants_end(void *data);

/* Characters in a line of the terminal behind out; 0: it is none. */
unsigned screen_width(FILE *out);

#endif
