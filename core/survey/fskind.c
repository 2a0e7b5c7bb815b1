/* What kind of thing a filesystem type is. */
#include "survey/stack.h"

#include <string.h>

static const struct {
	const char *fstype;
	enum dbt_fs_kind kind;
} kinds[] = {
	{ "nfs", DBT_FS_NETWORK },
	{ "nfs4", DBT_FS_NETWORK },
	{ "cifs", DBT_FS_NETWORK },
	{ "smb3", DBT_FS_NETWORK },
	{ "smbfs", DBT_FS_NETWORK },
	{ "9p", DBT_FS_NETWORK },
	{ "virtiofs", DBT_FS_NETWORK },
	{ "vboxsf", DBT_FS_NETWORK },
	{ "afs", DBT_FS_NETWORK },
	{ "ceph", DBT_FS_NETWORK },
	{ "lustre", DBT_FS_NETWORK },
	{ "lustre_tgt", DBT_FS_BLOCK },
	{ "beegfs", DBT_FS_NETWORK },
	{ "gpfs", DBT_FS_NETWORK },
	{ "pvfs2", DBT_FS_NETWORK },
	{ "orangefs", DBT_FS_NETWORK },
	{ "panfs", DBT_FS_NETWORK },
	{ "wekafs", DBT_FS_NETWORK },
	{ "coda", DBT_FS_NETWORK },
	{ "ncpfs", DBT_FS_NETWORK },
	{ "prl_fs", DBT_FS_NETWORK },
	{ "vmhgfs", DBT_FS_NETWORK },
	{ "davfs", DBT_FS_NETWORK },
	{ "gfs2", DBT_FS_CLUSTER },
	{ "ocfs2", DBT_FS_CLUSTER },
	{ "tmpfs", DBT_FS_RAM },
	{ "ramfs", DBT_FS_RAM },
	{ "hugetlbfs", DBT_FS_RAM },
	{ "rootfs", DBT_FS_RAM },
	{ "devtmpfs", DBT_FS_PSEUDO },
	{ "overlay", DBT_FS_OVERLAY },
	{ "aufs", DBT_FS_OVERLAY },
	{ "unionfs", DBT_FS_OVERLAY },
	{ "fuse", DBT_FS_USERSPACE },
	{ "fuseblk", DBT_FS_BLOCK },
	{ "zfs", DBT_FS_OPAQUE },
	{ "ubifs", DBT_FS_OPAQUE },
	{ "jffs2", DBT_FS_OPAQUE },
	{ "proc", DBT_FS_PSEUDO },
	{ "sysfs", DBT_FS_PSEUDO },
	{ "cgroup", DBT_FS_PSEUDO },
	{ "cgroup2", DBT_FS_PSEUDO },
	{ "devpts", DBT_FS_PSEUDO },
	{ "mqueue", DBT_FS_PSEUDO },
	{ "debugfs", DBT_FS_PSEUDO },
	{ "tracefs", DBT_FS_PSEUDO },
	{ "securityfs", DBT_FS_PSEUDO },
	{ "selinuxfs", DBT_FS_PSEUDO },
	{ "smackfs", DBT_FS_PSEUDO },
	{ "apparmorfs", DBT_FS_PSEUDO },
	{ "configfs", DBT_FS_PSEUDO },
	{ "pstore", DBT_FS_PSEUDO },
	{ "efivarfs", DBT_FS_PSEUDO },
	{ "bpf", DBT_FS_PSEUDO },
	{ "autofs", DBT_FS_PSEUDO },
	{ "binfmt_misc", DBT_FS_PSEUDO },
	{ "rpc_pipefs", DBT_FS_PSEUDO },
	{ "nfsd", DBT_FS_PSEUDO },
	{ "nsfs", DBT_FS_PSEUDO },
	{ "fusectl", DBT_FS_PSEUDO },
	{ "cpuset", DBT_FS_PSEUDO },
	{ "resctrl", DBT_FS_PSEUDO },
	{ "dlmfs", DBT_FS_PSEUDO },
	{ "binder", DBT_FS_PSEUDO },
	{ "fuse.gvfsd-fuse", DBT_FS_PSEUDO },
	{ "fuse.portal", DBT_FS_PSEUDO },
	{ "fuse.lxcfs", DBT_FS_PSEUDO },
	/* FUSE filesystems that are known to be network clients. */
	{ "fuse.sshfs", DBT_FS_NETWORK },
	{ "fuse.glusterfs", DBT_FS_NETWORK },
	{ "fuse.ceph", DBT_FS_NETWORK },
	{ "fuse.ceph-fuse", DBT_FS_NETWORK },
	{ "fuse.s3fs", DBT_FS_NETWORK },
	{ "fuse.goofys", DBT_FS_NETWORK },
	{ "fuse.rclone", DBT_FS_NETWORK },
	{ "fuse.juicefs", DBT_FS_NETWORK },
	{ "fuse.gcsfuse", DBT_FS_NETWORK },
	{ "fuse.mount-s3", DBT_FS_NETWORK },
	{ "fuse.cvmfs2", DBT_FS_NETWORK },
	{ "fuse.vmhgfs-fuse", DBT_FS_NETWORK },
	{ "fuse.davfs", DBT_FS_NETWORK },
	{ "fuse.seaweedfs", DBT_FS_NETWORK },
	{ "fuse.moosefs", DBT_FS_NETWORK },
	{ "fuse.mfs", DBT_FS_NETWORK },
};

enum dbt_fs_kind dbt_fs_kind_of(const char *fstype)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].fstype, fstype) == 0)
			return kinds[i].kind;
	if (strncmp(fstype, "fuse.", 5) == 0)
		return DBT_FS_USERSPACE;
	return DBT_FS_BLOCK;
}
