/* The smallest files that are databases of each format, byte for byte as the formats' sources describe
 * them. Buffers are the caller's: dbt_buf_release. Every function fails the running cmocka test when
 * memory runs out. */
#ifndef TESTS_SUPPORT_SAMPLES_H
#define TESTS_SUPPORT_SAMPLES_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

void put_le(struct dbt_buf *buf, uint64_t value, unsigned bytes);
void put_be(struct dbt_buf *buf, uint64_t value, unsigned bytes);
void put_text(struct dbt_buf *buf, const char *text); /* without the NUL */
void put_fill(struct dbt_buf *buf, unsigned char byte, size_t n);

/* A DIAMOND database of version 3 with this many sequences of ten residues. */
struct dbt_buf sample_diamond(uint64_t sequences);

/* SQLite with this many pages; the page count is marked valid. page_size up to 65536. */
struct dbt_buf sample_sqlite(uint32_t page_size, uint32_t pages);

/* hash.k2d with cells of cell_bits (32 or 40). */
struct dbt_buf sample_kraken2_hash(uint64_t capacity, unsigned cell_bits);
struct dbt_buf sample_kraken2_taxo(void);
struct dbt_buf sample_kraken2_opts(void);

/* .pin or .nin of sequences that are seq_bytes each, with headers of header_bytes each. version 5 also
 * names its LMDB file. */
struct dbt_buf sample_blast_index(unsigned version, bool protein, const char *lmdb,
                                  uint32_t sequences, uint32_t header_bytes, uint32_t seq_bytes);

/* .h3f or .h3p: one model between two magics. */
struct dbt_buf sample_hmmer_part(const char *magic);
/* .h3i: SSI 3.0 with this many primary and secondary keys. */
struct dbt_buf sample_ssi(uint64_t keys);

/* Writes whole sets below ROOT/dir ("" for ROOT itself). */
void sample_write(const char *root, const char *path, struct dbt_buf buf); /* releases buf */
void sample_hmmer_set(const char *root, const char *base);
void sample_kraken2_dir(const char *root, const char *dir);
void sample_blast_volume(const char *root, const char *base, bool protein);
void sample_bakta_dir(const char *root, const char *dir, bool light);

#endif
