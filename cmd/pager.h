/* Text that is longer than the terminal goes through a pager, as git and systemd do it. */
#ifndef DBT_CMD_PAGER_H
#define DBT_CMD_PAGER_H

#include <stdio.h>

/* Prints the text on out, or, where out is a terminal with fewer lines, through $PAGER (less; "cat" or an empty value:
 * none). A pager that cannot be started costs nothing: the text is printed. */
void pager_print(const char *text, FILE *out);

#endif
