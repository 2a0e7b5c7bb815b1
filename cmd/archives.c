#include "cmd/archives.h"

#include "flow/unpack.h"

#include <errno.h>
#include <stdlib.h>

void archives_release(struct archives *archives)
{
	for (size_t i = 0; i < archives->n; i++)
		free(archives->paths[i]);
	free(archives->paths);
	*archives = (struct archives){ 0 };
}

int archives_take(struct app *app, struct dbt_ledger *ledger, char **operands, size_t n,
                  struct archives *ret, struct dbt_err *err)
{
	struct archives found = { .paths = calloc(n, sizeof(*found.paths)) };
	int r = found.paths ? 1 : -ENOMEM;

	while (r == 1 && found.n < n) {
		char *path = NULL;

		r = dbt_unpack_is_archive(&app->ctx, ledger, operands[found.n], &path);
		if (r == 1 && found.n > 0 && !dbt_unpack_same_set(found.paths[0], path)) {
			free(path);
			break;
		}
		if (r == 1)
			found.paths[found.n++] = path;
	}
	if (r < 0) {
		archives_release(&found);
		return dbt_err_sys(err, r, "cannot plan");
	}
	*ret = found;
	return 0;
}
