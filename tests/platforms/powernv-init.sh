#!/bin/busybox sh
# The first process of the image that `cargo xtask powernv` boots: a menu, the server, one statement, power off.
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
busybox ip link set lo up
busybox dmesg -n 1

# Entries as the menu file has them: an id, a tab, a name.
echo "Squall boot menu ($(busybox uname -srm)); $(busybox grep -m1 '^machine' /proc/cpuinfo)"
while IFS="$(printf '\t')" read -r id name; do
    echo "  [$id] $name"
done < /menu
echo "Entry 1 in 2 seconds; type a number for another."
busybox stty -F /dev/console -icanon 2>/dev/null
read -r -t 2 choice < /dev/console
choice=$(printf %s "$choice" | busybox tr -cd 0-9)
name=$(busybox grep "^${choice:-1}$(printf '\t')" /menu | busybox cut -f 2)
echo "Booting: ${name:-no such entry}"

case "${choice:-1}" in
1)
    /squalld --datadir=/data --port=3306 --socket=/s --insecure-root > /log 2>&1 &
    started=$(busybox cut -d ' ' -f 1 /proc/uptime)
    for second in $(busybox seq 1 300); do
        busybox grep -q 'ready for connections' /log && break
        busybox sleep 1
    done
    echo "Server up: from $started s to $(busybox cut -d ' ' -f 1 /proc/uptime) s after the kernel's start"
    echo "SELECT 1 answers:"
    /squall --host=127.0.0.1 --port=3306 --user=root -e 'SELECT 1' 2>&1
    echo "SELECT VERSION(), @@version_compile_machine answers:"
    /squall --host=127.0.0.1 --port=3306 --user=root -e 'SELECT VERSION(), @@version_compile_machine' 2>&1
    echo "End of the server's log:"
    busybox tail -n 5 /log
    ;;
2) exec busybox sh ;;
esac
echo "Powering off."
busybox sync
busybox poweroff -f
