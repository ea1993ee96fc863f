#!/bin/sh
# Installs this folder as a service of systemd, for a user of its own and with a daily backup: sudo deploy/install.sh
# Run from a newer version it makes a backup and upgrades. Settings: /opt/frostagent/.env; data: /var/lib/frostagent.
set -eu
umask 022
here=$(cd "$(dirname "$0")/.." && pwd)
code=/opt/frostagent
data=/var/lib/frostagent

stop() {
	echo "$1" >&2
	exit 1
}
[ "$(id -u)" = 0 ] || stop "This takes root: sudo $0 / 需要 root 权限"
command -v systemctl >/dev/null || stop "There is no systemd here: docs/deploy.md / 这台机器没有 systemd，见 docs/zh-CN/deploy.md"
[ ! -e "$code/data" ] || stop "$code/data holds an installation made by hand: move it to $data first / 请先把手动安装的 $code/data 移到 $data"
if ! { command -v make && python3 -c 'import ensurepip'; } >/dev/null 2>&1; then
	command -v apt-get >/dev/null || stop "Install make and Python 3.11 with venv first / 请先安装 make 和带 venv 的 Python 3.11"
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq && apt-get install -y -qq make python3 python3-venv
fi

id frost >/dev/null 2>&1 || useradd --system --user-group --home-dir "$data" --shell /usr/sbin/nologin frost
install -d -m 700 -o frost -g frost "$data" "$data/plugins"
if [ -e "$code/.venv/.installed" ]; then
	echo "Making a backup ... / 正在备份……"
	as_frost() { setpriv --reuid=frost --regid=frost --init-groups "$@"; }
	keys=--without-keys
	! grep -qs '^FROST_BACKUP_PASSPHRASE=.' "$code/.env" || keys=
	# shellcheck disable=SC2086 # versions without that option make it so by themselves
	(cd "$code" && { as_frost .venv/bin/python manage.py backup $keys 2>/dev/null || as_frost .venv/bin/python manage.py backup; })
	trap '[ $? = 0 ] || echo "The server is stopped, its data is as it was: mend what stands above, and run this again / 服务已停，数据没动：解决上面的问题后再运行一次" >&2' EXIT
	systemctl stop frostagent
fi
if [ "$here" != "$code" ]; then
	mkdir -p "$code"
	for part in agent frostproject onebot tools templates locale; do rm -rf "${code:?}/$part"; done
	tar -C "$here" --exclude=./.git --exclude=./.venv --exclude=./.env --exclude=./data --exclude=./plugins --exclude='./.*_cache' --exclude=node_modules -cf - . \
		| tar -C "$code" --no-same-owner -xf -
fi
if [ ! -e "$code/.env" ]; then
	cp "$code/.env.example" "$code/.env"
	printf 'FROST_DATA_DIR=%s\nPLUGINS_DIR=%s/plugins\n' "$data" "$data" >>"$code/.env"
fi
chown frost:frost "$code/.env"
chmod 600 "$code/.env"
rm -f "$code/.venv/.installed" # what is new is compiled here: the server may not write beside its code
make -C "$code" install
install -m 644 "$code"/deploy/frostagent*.service "$code"/deploy/frostagent*.timer /etc/systemd/system/
systemctl daemon-reload
systemctl enable --now frostagent.service frostagent-backup.timer

tries=0
until "$code/.venv/bin/python" -IS "$code/deploy/ready.py" 1234 2>/dev/null; do
	tries=$((tries + 1))
	[ "$tries" -lt 120 ] || { journalctl -u frostagent -n 30 -o cat --no-pager; stop "The server does not become ready / 服务没有就绪"; }
	sleep 1
done
trap - EXIT
journalctl -u frostagent -n 30 -o cat --no-pager
echo "It runs: http://127.0.0.1:1234/admin/start/ / 已经在运行"
