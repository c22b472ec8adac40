#!/usr/bin/env bash
# The life of the rpm on a machine, under boot.sh. It is a Debian, so that the rpm
# finds no packages that it depends on.
# shellcheck source=packaging/test/lib.sh
. "$(dirname "$0")/lib.sh"
environment=/etc/sysconfig/server_rental_exporter
architecture=$(uname --machine)
run_rpm() { rpm --force-debian --nodeps "$@"; }

mkdir -p /etc/systemd/system-preset
echo 'disable *' >/etc/systemd/system-preset/99-default.preset # as in Fedora

step "install: nothing starts"
run_rpm --install "$packages"/server-rental-exporter-*."$architecture".rpm
systemctl daemon-reload # where rpm is the native tool, systemd has a trigger for this
is UnitFileState disabled
is ActiveState inactive

step "start without settings"
says_what_to_set

step "demo"
serves_demo

step "upgrade: a changed configuration stays"
echo '# changed' >>"$config"
cp "$config" /tmp/changed
process=$(systemctl show --property=MainPID --value "$unit")
run_rpm --upgrade "$test"/next/dist/release/*."$architecture".rpm
diff /tmp/changed "$config"
grep --quiet 'of the next version' "$config.rpmnew"
eventually scraped process_start_time_seconds
refused is MainPID "$process"

step "erase"
run_rpm --erase server-rental-exporter
is ActiveState inactive
refused systemctl is-enabled "$unit"
diff /tmp/changed "$config.rpmsave"
refused test -e /usr/bin/server_rental_exporter
