#!/usr/bin/env bash
# The life of the deb on a machine, under boot.sh.
# shellcheck source=packaging/test/lib.sh
. "$(dirname "$0")/lib.sh"
environment=/etc/default/server_rental_exporter
architecture=$(dpkg --print-architecture)

# traces lists all files that have the name of the package or the program.
traces() { find / -xdev -name '*server[-_]rental*' -not -path '/var/cache/*' | sort; }
before=$(traces)

# check [PROGRAM] is the documented command that checks the configuration with the tokens as they are now.
check() { sh -ec "$(documented "sudo unshare" | sed "s|^ *server_rental_exporter|${1:-&}|")"; }

step "install: nothing starts"
apt-get --yes install "$packages"/server-rental-exporter_*_"$architecture".deb
is UnitFileState disabled
is ActiveState inactive
same "$(stat --format='%a %U' /etc/server_rental_exporter/tokens)" "700 root"
same "$(systemd-analyze verify "$unit" server_rental_exporter.socket 2>&1)" ""
systemd-analyze security --offline=true --threshold=19 --no-pager "/lib/systemd/system/$unit" >/dev/null # below 2.0, of 10
man --where server_rental_exporter

step "start without settings"
says_what_to_set
server_rental_exporter --config.file="$config" --api.base-url=https://rental.example/api/v1 --config.check

step "demo"
serves_demo
listening() { ss --listening --tcp --numeric --no-header 'sport = :10170' | awk '{ print $4 }'; }
same "$(listening)" 127.0.0.1:10170
refused grep --quiet '^Uid:.*\b0\b' "/proc/$(systemctl show --property=MainPID --value "$unit")/status"

step "two accounts, as the comments of the configuration say"
systemd-run --quiet --unit=simulator "$test/simulator" --account=main:token-of-main --account=lab:token-of-lab
options ""
sed -i -e 's|base_url:$|base_url: http://127.0.0.1:10171/api/v1|' -e '/^# accounts:/,$s/^# //' "$config"
refused systemctl restart "$unit"
eventually logged "accounts[0].token_file: /run/credentials/$unit/token_main: no such file or directory"
for account in main lab; do
  echo "token-of-$account" | sh -c "umask 077; cat > /etc/server_rental_exporter/tokens/$account"
done
check # before the restart, though the service has not got these tokens yet
systemctl restart "$unit"
eventually scraped 'server_rental_exporter_collector_success{account="main",collector="servers"} 1'
eventually scraped 'server_rental_exporter_collector_success{account="lab",collector="servers"} 1'
refused logged token-of

step reload
eventually scraped 'server_rental_exporter_collector_success{account="main",collector="servers"} 1'
printf 'watches:\n  - {name: installed, regions: [Europe]}\n' >>"$config"
systemctl reload "$unit"
eventually scraped 'server_rental_watch_plans{watch="installed"}'
cp "$config" /tmp/valid
echo 'unknown: 1' >>"$config"
refused check
refused systemctl reload "$unit"
eventually logged "unknown"
is ActiveState active
scraped 'server_rental_exporter_config_last_reload_successful 1'
scraped 'server_rental_watch_plans{watch="installed"}'
cp /tmp/valid "$config"
check
systemctl reload "$unit"

step "open to others"
options --web.listen-address=:10170
systemctl restart "$unit"
eventually scraped process_start_time_seconds
same "$(listening)" '*:10170'
options ""

step "restart after failures, but not at once"
is RestartUSec 20s
for signal in QUIT KILL; do # a Go program ends at SIGQUIT as it does after a panic
  systemctl kill --signal="$signal" "$unit"
  eventually is SubState auto-restart
  systemctl restart "$unit"
  eventually scraped process_start_time_seconds
done
systemctl stop "$unit"
is Result success
systemd-run --quiet --unit=other /usr/bin/server_rental_exporter --demo
eventually scraped process_start_time_seconds
systemctl start "$unit"
eventually is SubState auto-restart
eventually logged "address already in use"
systemctl stop "$unit" other

step "socket"
options --web.systemd-socket
systemctl start "$unit"
eventually logged "no stream socket passed"
systemctl stop "$unit"
systemctl enable --now server_rental_exporter.socket
is ActiveState inactive
eventually scraped 'server_rental_exporter_collector_success{account="main",collector="servers"} 1'
is ActiveState active
systemctl stop "$unit"
options "--web.systemd-socket --unknown" # a start that fails again and again
curl --silent --max-time 10 http://127.0.0.1:10170/ || true
eventually systemctl is-failed --quiet server_rental_exporter.socket
options ""
systemctl start "$unit"

step "upgrade: a changed configuration stays"
cp "$config" /tmp/changed
process=$(systemctl show --property=MainPID --value "$unit")
dpkg-deb -x "$test"/next/dist/release/*_"$architecture".deb /tmp/new
check /tmp/new/usr/bin/server_rental_exporter
dpkg --force-confold --install "$test"/next/dist/release/*_"$architecture".deb
diff /tmp/changed "$config"
grep --quiet 'of the next version' "$config.dpkg-dist"
eventually scraped process_start_time_seconds
refused is MainPID "$process"
is UnitFileState enabled

step "remove and purge: nothing stays"
dpkg --remove server-rental-exporter
is ActiveState inactive
diff /tmp/changed "$config"
dpkg --purge server-rental-exporter
diff <(echo "$before") <(traces)
