#!/bin/sh
# Installs or upgrades grabd: sh install.sh [--dry-run] [--small-fonts] --sha256 HEX FILE_OR_URL
#
# FILE_OR_URL is what script/package has made: a Debian package (grabd_VERSION_ARCH.deb), or an archive for other Linux
# systems with systemd (grabd-VERSION-ARCH.tar.gz). Its SHA-256 must be HEX, which you have from whoever published it.
# --dry-run checks everything and prints what would be done.
#
# With a Debian package come the browser and fonts for all writing systems in use: 81 MB to download, 150 MB installed. With
# --small-fonts there are only Latin, Greek, Cyrillic, Arabic and Hebrew letters and emoji: 12 MB and 16 MB.
set -eu

say() { printf 'install: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
usage() {
  echo "usage: sh install.sh [--dry-run] [--small-fonts] --sha256 HEX FILE_OR_URL" >&2
  exit "$1"
}

dry_run=
sha256=
source=
small_fonts="fonts-dejavu-core fonts-liberation fonts-noto-color-emoji"
fonts="$small_fonts fonts-noto-cjk fonts-noto-core"
while [ $# -gt 0 ]; do
  case $1 in
    --dry-run) dry_run=yes ;;
    --small-fonts) fonts=$small_fonts ;;
    --sha256)
      [ $# -ge 2 ] || usage 2
      sha256=$2
      shift
      ;;
    -h | --help) usage 0 ;;
    -*) say "unknown option $1"; usage 2 ;;
    *)
      [ -z "$source" ] || { say "one file or URL, got $source and $1"; usage 2; }
      source=$1
      ;;
  esac
  shift
done
[ -n "$source" ] || usage 2
[ -n "$sha256" ] || fail "--sha256 is missing: the checksum of the file, from whoever published it"
printf '%s' "$sha256" | grep -qxE '[0-9a-f]{64}' || fail "--sha256 must be 64 hexadecimal digits in lower case, got $sha256"

# Runs a command that changes the system, or only prints it.
run() {
  if [ "$dry_run" ]; then
    printf 'would run: %s\n' "$*"
  else
    "$@"
  fi
}

# --- The system ---

[ "$(uname -s)" = Linux ] || fail "grabd runs on Linux, and this is $(uname -s); run it in a container or virtual machine"
case $(uname -m) in
  x86_64) arch=amd64 ;;
  aarch64) arch=arm64 ;;
  *) fail "there are programs for x86_64 and aarch64, and this is $(uname -m); build grabd from source: script/package" ;;
esac
[ "$dry_run" ] || [ "$(id -u)" = 0 ] || fail "this must run as root; try: sudo sh install.sh …, or --dry-run"
libc=$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d' ' -f2) || libc=
[ -n "$libc" ] || fail "grabd needs glibc, which this system does not have (musl?); use the container image instead"
ID=unknown VERSION_ID=0
# shellcheck disable=SC1091 # A file of the system.
[ ! -r /etc/os-release ] || . /etc/os-release
case $ID in
  debian) [ "${VERSION_ID:-99}" -ge 12 ] || fail "Debian $VERSION_ID is too old; 12 is the oldest that works" ;;
  ubuntu) [ "${VERSION_ID%%.*}" -ge 22 ] || fail "Ubuntu $VERSION_ID is too old; 22.04 is the oldest that works" ;;
esac

case $source in
  *.deb)
    kind=deb
    { have apt-get && have dpkg; } || fail "$ID has no apt; use the archive (.tar.gz) instead of the Debian package"
    ;;
  *.tar.gz)
    kind=archive
    [ -d /run/systemd/system ] || have systemctl || [ "$dry_run" ] ||
      fail "this system has no systemd; unpack the archive, and run bin/grabd with your own supervisor"
    ;;
  *) fail "$source is neither a .deb nor a .tar.gz" ;;
esac

# --- The file ---

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
# apt reads the package as another user.
chmod 755 "$scratch"
file=$scratch/${source##*/}
case $source in
  https://* | http://*)
    if have curl; then
      curl -fsSL --max-time 600 --output "$file" "$source" || fail "$source cannot be downloaded"
    elif have wget; then
      wget -q --timeout=60 -O "$file" "$source" || fail "$source cannot be downloaded"
    else
      fail "neither curl nor wget is installed; download $source yourself, and name the file"
    fi
    ;;
  *)
    [ -f "$source" ] || fail "there is no file $source"
    cp "$source" "$file"
    ;;
esac
actual=$(sha256sum "$file" | cut -d' ' -f1)
[ "$actual" = "$sha256" ] || fail "the SHA-256 of $source is $actual, and not $sha256: do not use this file"
say "the checksum is right"

# --- A Debian package ---

if [ "$kind" = deb ]; then
  name=$(dpkg-deb --field "$file" Package) || fail "$source is not a Debian package"
  [ "$name" = grabd ] || fail "$source is the package $name, and not grabd"
  built_for=$(dpkg-deb --field "$file" Architecture)
  [ "$built_for" = "$(dpkg --print-architecture)" ] ||
    fail "the package is for $built_for, and this system is $(dpkg --print-architecture)"
  run apt-get update -q
  # The package recommends the browser and all fonts, which are chosen here. Ubuntu's package of this browser's name only
  # installs a snap, which a service cannot use.
  browser=chromium-headless-shell
  [ "$ID" != ubuntu ] || browser=
  # shellcheck disable=SC2086 # The lists must be split into words.
  run env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$file" $browser $fonts ||
    fail "apt could not install the package; its message is above"
  [ "$browser" ] ||
    say "Ubuntu has no package of Chromium's headless shell: name your own in /etc/grabd/grabd.toml, browser.executable"
  say "settings: /etc/grabd/grabd.toml; check the machine: runuser -u grabd -- grabd --config /etc/grabd/grabd.toml doctor"
  exit
fi

# --- An archive ---

tar -tzf "$file" >"$scratch/list" 2>/dev/null || fail "$source is not a gzip-compressed tar archive"
! grep -qE '^/|(^|/)\.\.(/|$)' "$scratch/list" || fail "$source has paths outside of its directory"
mkdir "$scratch/content"
tar -xzf "$file" -C "$scratch/content" --no-same-owner
content=$(find "$scratch/content" -mindepth 1 -maxdepth 1 -type d)
[ -x "$content/bin/grabd" ] || fail "$source does not contain bin/grabd"
built_for=$(cat "$content/ARCHITECTURE")
[ "$built_for" = "$arch" ] || fail "the archive is for $built_for, and this system is $arch"
"$content/bin/grabd" --version >/dev/null 2>&1 ||
  fail "the program does not run here: $("$content/bin/grabd" --version 2>&1 | head -n1); build it from source"

if ! getent passwd grabd >/dev/null; then
  run useradd --system --user-group --no-create-home --home-dir /var/lib/grabd --shell /usr/sbin/nologin grabd
fi
run install -d -o grabd -g grabd -m 0700 /var/lib/grabd
for program in grabd grab; do
  # A running program cannot be overwritten, but replaced.
  run install -m 0755 "$content/bin/$program" "/usr/local/bin/.$program.new"
  run mv "/usr/local/bin/.$program.new" "/usr/local/bin/$program"
done
# What /docs/sdks offers. Packages of the former version are not offered any more.
run rm -rf /usr/local/share/grabd/packages
if [ -d "$content/share/grabd/packages" ]; then
  run install -D -m 0644 -t /usr/local/share/grabd/packages "$content"/share/grabd/packages/*
fi
run install -d -m 0755 /etc/grabd
[ -e /etc/grabd/grabd.toml ] || run install -m 0640 -g grabd "$content/grabd.toml" /etc/grabd/grabd.toml
run install -m 0644 "$content/grabd.service" /etc/systemd/system/grabd.service
if [ -d /run/systemd/system ] || [ "$dry_run" ]; then
  run systemctl daemon-reload
  run systemctl enable grabd
  run systemctl restart grabd
fi
have chromium-headless-shell || have chromium || have google-chrome ||
  say "no browser was found: install chromium, and name it in /etc/grabd/grabd.toml, browser.executable"
say "settings: /etc/grabd/grabd.toml; check the machine: runuser -u grabd -- grabd --config /etc/grabd/grabd.toml doctor"
