/* Any text as a recording, as --replay takes it: an error, or a diagnosis that can be told and recorded again. */
#include "cmd/diagnose_tables.h"
#include "cmd/recording.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void diagnose(const struct dbt_observation *obs)
{
	struct dbt_diagnosis d;
	json_t *json;

	if (dbt_diagnose(obs, &d) < 0)
		abort();
	json = diagnose_json(obs, &d);
	if (!json)
		abort();
	json_decref(json);
	dbt_diagnosis_release(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	json_t *json = json_loadb((const char *)data, len, 0, NULL), *again;
	struct dbt_observation obs;
	struct dbt_err err;

	if (json && recording_decode(json, &obs, &err) == 0) {
		diagnose(&obs);
		if (recording_mask(&obs) < 0)
			abort();
		diagnose(&obs);
		again = recording_encode(&obs);
		if (!again)
			abort();
		json_decref(again);
		dbt_observation_release(&obs);
	}
	json_decref(json);
	return 0;
}
