#!/bin/busybox sh
# The init of a test's machine: loads the modules, then runs the scripts that come over the second serial line. Each
# comes after a line with its length; what comes back is a line with its status, the lengths of its standard output and
# standard error, and those two.
/bin/busybox --install -s /bin
export PATH=/bin HOME=/tmp
mkdir -p /proc /sys /dev /tmp /run
chmod 1777 /tmp
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
ip link set lo up
while read -r module; do insmod "/modules/$module.ko"; done </modules/order

# Whoever started this machine may have died.
(sleep 900 && poweroff -f) &

stty -F /dev/ttyS1 115200 raw -echo
exec 3<>/dev/ttyS1
cd /tmp
echo ready >&3
while read -r length <&3; do
  head -c "$length" <&3 >script
  sh script >out 2>err 3>&- </dev/null
  echo "$? $(stat -c %s out) $(stat -c %s err)" >&3
  cat out err >&3
done
poweroff -f
