/* Who may do what with an inode: permission bits and the POSIX access control list, evaluated for
 * one kind of user as the kernel does (acl(5), access check algorithm). The list is read from its
 * extended attribute, whose layout is stable (linux/posix_acl_xattr.h). */
#ifndef DBT_SYS_ACL_H
#define DBT_SYS_ACL_H

#include "sys/at.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DBT_ACL_ACCESS  "system.posix_acl_access"
#define DBT_ACL_DEFAULT "system.posix_acl_default"

enum dbt_acl_tag { /* as stored */
	           DBT_ACL_USER_OBJ = 0x01,
	           DBT_ACL_USER = 0x02,
	           DBT_ACL_GROUP_OBJ = 0x04,
	           DBT_ACL_GROUP = 0x08,
	           DBT_ACL_MASK = 0x10,
	           DBT_ACL_OTHER = 0x20,
};

enum { /* of permission bits, as in a mode's last octal digit */
       DBT_ACL_READ = 4,
       DBT_ACL_WRITE = 2,
       DBT_ACL_EXEC = 1,
};

struct dbt_acl_entry {
	uint16_t tag;
	uint16_t perm;
	uint32_t id; /* uid or gid of USER and GROUP */
};

/* Zero-initialised: no list, the permission bits alone count. */
struct dbt_acl {
	struct dbt_acl_entry *items;
	size_t n;
};

/* A kind of user: one uid, one group, or neither (everybody else). */
struct dbt_acl_subject {
	bool has_uid, has_gid;
	uint32_t uid;
	uint32_t gid;
};

/* 0 also where there is no list or no such thing; -EINVAL: damaged; -errno. Release it. */
int dbt_acl_of_fd(int fd, struct dbt_acl *ret);
int dbt_acl_of_path(const char *path, struct dbt_acl *ret);
int dbt_acl_parse(const void *data, size_t len, struct dbt_acl *ret);
void dbt_acl_release(struct dbt_acl *acl);

/* The subject has all of the wanted bits (of DBT_ACL_READ ...). */
bool dbt_acl_allows(const struct dbt_ident *id, const struct dbt_acl *acl,
                    const struct dbt_acl_subject *subject, unsigned want);

/* Whoever it is has them. */
bool dbt_acl_allows_all(const struct dbt_ident *id, const struct dbt_acl *acl, unsigned want);

#endif
