#include "sys/root.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int dbt_root_open(struct dbt_root *root, const char *path)
{
	root->live = !path || (path[0] == '/' && path[1] == '\0');
	root->fd = open(path ? path : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root->fd < 0 ? -errno : 0;
}

void dbt_root_close(struct dbt_root *root)
{
	if (root->fd >= 0)
		(void)close(root->fd);
	root->fd = -1;
}

/* RESOLVE_IN_ROOT keeps the links of a captured tree inside it. Kernels without openat2 take the
 * plain way: the trees the kernel makes have relative links only. On the live root nothing can lead
 * out. */
static int open_below(const struct dbt_root *root, const char *path, int flags)
{
	struct open_how how = { .flags = (unsigned)(flags | O_CLOEXEC),
		                .resolve = RESOLVE_IN_ROOT };
	int fd;

	if (!root->live) {
		fd = (int)syscall(SYS_openat2, root->fd, path, &how, sizeof(how));
		if (fd >= 0 || errno != ENOSYS)
			return fd < 0 ? -errno : fd;
	}
	fd = openat(root->fd, path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int dbt_root_openfile(const struct dbt_root *root, const char *path)
{
	/* O_NONBLOCK: a FIFO in a captured tree must not hang us. */
	return open_below(root, path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
}

int dbt_root_read(const struct dbt_root *root, const char *path, size_t max_bytes,
                  struct dbt_buf *buf)
{
	dbt_autoclose int fd = dbt_root_openfile(root, path);
	ssize_t got;
	int r;

	if (fd < 0)
		return fd;
	dbt_buf_clear(buf);
	for (;;) {
		r = dbt_buf_reserve(buf, 4096);
		if (r < 0)
			return r;
		got = read(fd, buf->data + buf->len, 4096);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		buf->len += (size_t)got;
		buf->data[buf->len] = '\0';
		if (got == 0)
			return 0;
		if (buf->len > max_bytes)
			return -EFBIG;
	}
}

int dbt_root_read_line(const struct dbt_root *root, const char *path, struct dbt_buf *buf)
{
	int r = dbt_root_read(root, path, 65536, buf);

	if (r < 0)
		return r;
	while (buf->len > 0 && isspace((unsigned char)buf->data[buf->len - 1]))
		buf->data[--buf->len] = '\0';
	return 0;
}

int dbt_root_read_u64(const struct dbt_root *root, const char *path, uint64_t *ret)
{
	struct dbt_buf buf = { 0 };
	char *end = NULL;
	uint64_t v;
	int r = dbt_root_read_line(root, path, &buf);

	if (r == 0) {
		errno = 0;
		v = strtoull(dbt_buf_str(&buf), &end, 10);
		if (buf.len == 0 || !isdigit((unsigned char)buf.data[0]) || *end != '\0' ||
		    errno != 0)
			r = -EINVAL;
		else
			*ret = v;
	}
	dbt_buf_release(&buf);
	return r;
}

int dbt_root_readlink(const struct dbt_root *root, const char *path, struct dbt_buf *buf)
{
	dbt_autoclose int fd = open_below(root, path, O_PATH | O_NOFOLLOW);
	char text[4096];
	ssize_t len;

	if (fd < 0)
		return fd;
	len = readlinkat(fd, "", text, sizeof(text));
	if (len < 0)
		return errno == ENOENT ? -EINVAL
		                       : -errno; /* not a link: the kernel says ENOENT for "" */
	if ((size_t)len == sizeof(text))
		return -ENAMETOOLONG;
	dbt_buf_clear(buf);
	return dbt_buf_add(buf, text, (size_t)len);
}

bool dbt_root_exists(const struct dbt_root *root, const char *path)
{
	dbt_autoclose int fd = open_below(root, path, O_PATH);

	return fd >= 0;
}

int dbt_root_opendir(const struct dbt_root *root, const char *path, DIR **ret)
{
	int fd = open_below(root, path, O_RDONLY | O_DIRECTORY);
	DIR *dir;

	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir) {
		int r = -errno;

		(void)close(fd);
		return r;
	}
	*ret = dir;
	return 0;
}
