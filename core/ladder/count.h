/* The loops of the DNA experiment: each takes bytes one after the other and counts A, C, G and T.
 * What is done with a byte is the same instructions in all of them; they differ in where the next
 * byte comes from. A barrier for the compiler in each turn keeps it from counting many bytes with
 * one instruction, which would be another experiment. */
#ifndef DBT_LADDER_COUNT_H
#define DBT_LADDER_COUNT_H

#include <stddef.h>
#include <stdint.h>

enum { DBT_BASES = 4 };

/* In the order A, C, T, G: bits 1 and 2 of the letters' codes, 0x41 0x43 0x54 0x47. */
struct dbt_counts {
	uint64_t n[DBT_BASES];
};

/* Adds text[0 .. n). */
void dbt_count_order(const uint8_t *text, size_t n, struct dbt_counts *counts);

/* Adds text[index[0 .. n)]. */
void dbt_count_index(const uint8_t *text, const uint32_t *index, size_t n,
                     struct dbt_counts *counts);

/* The same, but the address of each byte is known only when the one before has come. */
void dbt_count_dependent(const uint8_t *text, const uint32_t *index, size_t n,
                         struct dbt_counts *counts);

#endif
