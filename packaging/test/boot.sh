#!/usr/bin/env bash
# Runs a script of this directory as a service of a systemd of its own. Its root is
# that of this machine with all changes in memory, and its network is empty; the
# repository is /run/repository. Needs root; prints the script's output and returns
# its exit status.
set -euo pipefail
cd "$(dirname "$0")/../.."

# outside makes a cgroup, and starts inside in new namespaces.
outside() {
  local scratch status=0
  scratch=$(mktemp -d)
  mount -t tmpfs scratch "$scratch"
  mkdir "$scratch"/{cgroup,log,root,upper,work}
  mount -t cgroup2 cgroup2 "$scratch/cgroup"
  local group=$scratch/cgroup/packages-test-$$
  mkdir "$group"
  echo 0 >"$group/cgroup.procs"
  : >"$scratch/log/output"
  timeout --signal=KILL 900 unshare --mount --pid --fork --kill-child --cgroup --uts --ipc --net \
    "$0" inside "$scratch" "$1" >"$scratch/log/boot" 2>&1 </dev/null || status=$?
  cat "$scratch/log/output"
  [ "$status" -eq 0 ] || { echo "$1: exit status $status" && cat "$scratch/log/boot"; } >&2
  echo 0 >"$scratch/cgroup/cgroup.procs"
  find "$group" -depth -type d -exec rmdir {} +
  umount --recursive "$scratch"
  rmdir "$scratch"
  return "$status"
}

# inside sets the root up and becomes systemd.
inside() {
  local root=$1/root
  mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$root"
  mount -t proc proc "$root/proc"
  mount --bind "$root/proc/sys" "$root/proc/sys"
  mount -o remount,bind,ro "$root/proc/sys" # it is that of this machine
  mount -t sysfs -o ro sysfs "$root/sys"
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
  mount -t tmpfs tmpfs "$root/tmp"
  mount -t tmpfs -o mode=755 tmpfs "$root/run"
  mount -t tmpfs -o mode=755 tmpfs "$root/dev"
  mkdir "$root"/dev/{pts,shm} "$root"/run/{repository,log-of-test}
  local device
  for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
  done
  mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
  ln -s pts/ptmx "$root/dev/ptmx"
  mount --bind "$PWD" "$root/run/repository"
  mount --bind "$1/log" "$root/run/log-of-test"
  : >"$root/etc/fstab" # nothing of this machine is mounted or started
  rm -rf "$root"/etc/systemd/system/*.wants "$root/usr/sbin/policy-rc.d"
  cat >"$root/etc/systemd/system/packages-test.service" <<END
[Unit]
SuccessAction=exit
FailureAction=exit
[Service]
Type=oneshot
ExecStart=/run/repository/packaging/test/$2
StandardOutput=append:/run/log-of-test/output
StandardError=inherit
END
  ip link set lo up
  cd "$root"
  mkdir -p mnt/old
  pivot_root . mnt/old
  umount --lazy /mnt/old
  mount --make-rshared / # as systemd's credentials expect it
  exec env -i container=packages-test PATH="$PATH" /lib/systemd/systemd --system --unit=packages-test.service
}

case $1 in
  inside) inside "$2" "$3" ;;
  outside) outside "$2" ;;
  *) exec unshare --mount "$0" outside "$1" ;;
esac
