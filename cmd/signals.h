/* What signals do: the first SIGINT, SIGTERM or SIGHUP asks the running operation to stop through
 * the ordinary error path, the second ends the program. */
#ifndef DBT_CMD_SIGNALS_H
#define DBT_CMD_SIGNALS_H

#include <stdatomic.h>

/* Installs the handlers; to be called once, before threads exist. */
void signals_init(void);

/* Zero, or the signal that asks to stop: for dbt_ctx.cancel. */
atomic_int *signals_cancel(void);

/* Ends the program as SIGPIPE does: nobody reads stdout any more. */
_Noreturn void signals_die_of_pipe(void);

#endif
