#include "sys/acl.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

enum {
	VERSION = 2,
	HEADER_BYTES = 4,
	ENTRY_BYTES = 8,
	MAX_BYTES = 65536, /* XATTR_SIZE_MAX */
};

int dbt_acl_parse(const void *data, size_t len, struct dbt_acl *ret)
{
	const unsigned char *p = data;
	struct dbt_acl acl = { 0 };
	uint32_t version;

	if (len < HEADER_BYTES || (len - HEADER_BYTES) % ENTRY_BYTES != 0)
		return -EINVAL;
	memcpy(&version, p, sizeof(version));
	if (le32toh(version) != VERSION)
		return -EINVAL;
	acl.n = (len - HEADER_BYTES) / ENTRY_BYTES;
	acl.items = calloc(acl.n + 1, sizeof(*acl.items));
	if (!acl.items)
		return -ENOMEM;
	p += HEADER_BYTES;
	for (size_t i = 0; i < acl.n; i++, p += ENTRY_BYTES) {
		memcpy(&acl.items[i].tag, p, 2);
		memcpy(&acl.items[i].perm, p + 2, 2);
		memcpy(&acl.items[i].id, p + 4, 4);
		acl.items[i].tag = le16toh(acl.items[i].tag);
		acl.items[i].perm = le16toh(acl.items[i].perm);
		acl.items[i].id = le32toh(acl.items[i].id);
	}
	*ret = acl;
	return 0;
}

/* got: what getxattr answered. */
static int from_xattr(ssize_t got, const void *data, struct dbt_acl *ret)
{
	if (got >= 0)
		return dbt_acl_parse(data, (size_t)got, ret);
	if (errno != ENODATA && errno != EOPNOTSUPP)
		return -errno;
	*ret = (struct dbt_acl){ 0 };
	return 0;
}

int dbt_acl_of_fd(int fd, struct dbt_acl *ret)
{
	char *data = malloc(MAX_BYTES);
	int r;

	if (!data)
		return -ENOMEM;
	r = from_xattr(fgetxattr(fd, DBT_ACL_ACCESS, data, MAX_BYTES), data, ret);
	free(data);
	return r;
}

int dbt_acl_of_path(const char *path, struct dbt_acl *ret)
{
	char *data = malloc(MAX_BYTES);
	int r;

	if (!data)
		return -ENOMEM;
	r = from_xattr(lgetxattr(path, DBT_ACL_ACCESS, data, MAX_BYTES), data, ret);
	free(data);
	return r;
}

void dbt_acl_release(struct dbt_acl *acl)
{
	free(acl->items);
	*acl = (struct dbt_acl){ 0 };
}

static bool has(unsigned perm, unsigned want)
{
	return (perm & want) == want;
}

static unsigned mask_of(const struct dbt_acl *acl)
{
	for (size_t i = 0; i < acl->n; i++)
		if (acl->items[i].tag == DBT_ACL_MASK)
			return acl->items[i].perm;
	return 7;
}

static bool is_of_groups(const struct dbt_ident *id, const struct dbt_acl_entry *e,
                         const struct dbt_acl_subject *s)
{
	if (!s->has_gid)
		return false;
	return (e->tag == DBT_ACL_GROUP_OBJ && s->gid == id->gid) ||
	       (e->tag == DBT_ACL_GROUP && s->gid == e->id);
}

bool dbt_acl_allows(const struct dbt_ident *id, const struct dbt_acl *acl,
                    const struct dbt_acl_subject *subject, unsigned want)
{
	unsigned mask = mask_of(acl);
	bool in_group = false;

	if (subject->has_uid && subject->uid == id->uid)
		return has(id->mode >> 6, want);
	if (acl->n == 0)
		return has(subject->has_gid && subject->gid == id->gid ? id->mode >> 3 : id->mode,
		           want);
	for (size_t i = 0; i < acl->n; i++) {
		const struct dbt_acl_entry *e = &acl->items[i];

		if (e->tag == DBT_ACL_USER && subject->has_uid && e->id == subject->uid)
			return has(e->perm & mask, want);
	}
	for (size_t i = 0; i < acl->n; i++) {
		if (!is_of_groups(id, &acl->items[i], subject))
			continue;
		if (has(acl->items[i].perm & mask, want))
			return true;
		in_group = true;
	}
	return !in_group && has(id->mode, want);
}

bool dbt_acl_allows_all(const struct dbt_ident *id, const struct dbt_acl *acl, unsigned want)
{
	unsigned mask = mask_of(acl);

	if (!has(id->mode >> 6, want) || !has(id->mode >> 3, want) || !has(id->mode, want))
		return false;
	for (size_t i = 0; i < acl->n; i++) {
		const struct dbt_acl_entry *e = &acl->items[i];

		if ((e->tag == DBT_ACL_USER || e->tag == DBT_ACL_GROUP ||
		     e->tag == DBT_ACL_GROUP_OBJ) &&
		    !has(e->perm & mask, want))
			return false;
	}
	return true;
}
