/* Sentences for people, wrapped at the width of a screen. */
#ifndef DBT_CMD_PROSE_H
#define DBT_CMD_PROSE_H

#include <stdio.h>

/* Prints before, then the words of text over lines of at most width characters (0: one line), those
 * after the first indented. Whatever a name in it holds shows escaped. Returns 0 or -ENOMEM. */
int prose_print(FILE *out, unsigned width, const char *before, const char *text);

#endif
