/* Small directory trees for tests: captured roots, scratch files. Every function fails the running
 * cmocka test when it cannot do its job, so that callers need no checks. */
#ifndef TESTS_SUPPORT_TREE_H
#define TESTS_SUPPORT_TREE_H

#include <stddef.h>
#include <sys/types.h>

/* A new empty directory below $TMPDIR or /tmp; free() it after tree_remove. */
char *tree_new(void);

/* The same below a directory of the caller's choice. */
char *tree_new_in(const char *parent);

/* ROOT/path with the text, parent directories made on the way. */
void tree_put(const char *root, const char *path, const char *text);
void tree_put_bytes(const char *root, const char *path, const void *data, size_t len);
void tree_mkdir(const char *root, const char *path, mode_t mode);
void tree_symlink(const char *root, const char *path, const char *text);

/* ROOT/path as one string; free() it. */
char *tree_path(const char *root, const char *path);

/* Removes everything below and the directory itself; links are not followed. */
void tree_remove(const char *root);

#endif
