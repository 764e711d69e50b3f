#!/bin/sh
# Prints the compiler flags of an installed libwebsockets, or says what is missing.
#   find-lws.sh cflags|libs|check
# CC, LWS_PREFIX and PKG_CONFIG come from the environment.
set -u
: "${CC:=cc}" "${LWS_PREFIX:=}" "${PKG_CONFIG:=pkg-config}"

need="btref needs an installed libwebsockets, 4.4.0 or later, built with the cmake option
-DLWS_WITH_COMPRESSED_BACKTRACES=ON, which is off by default.
It is looked for with pkg-config libwebsockets, or, when LWS_PREFIX is set, in the directory
that cmake was given as CMAKE_INSTALL_PREFIX (LWS_PREFIX/include/libwebsockets.h,
LWS_PREFIX/lib/libwebsockets.a or .so):  make LWS_PREFIX=/opt/lws"

fail() {
	printf 'ref-c: %s\n%s\n' "$1" "$need" >&2
	exit 1
}

if [ -n "$LWS_PREFIX" ]; then
	[ -f "$LWS_PREFIX/include/libwebsockets.h" ] ||
		fail "there is no include/libwebsockets.h in LWS_PREFIX=$LWS_PREFIX"
	cflags="-isystem $LWS_PREFIX/include"
	libdir=
	for d in "$LWS_PREFIX/lib" "$LWS_PREFIX/lib64"; do
		[ -n "$libdir" ] || { [ -d "$d" ] && libdir=$d; }
	done
	if [ -f "$libdir/libwebsockets.a" ]; then
		libs=$libdir/libwebsockets.a
	elif [ -n "$libdir" ] && ls "$libdir"/libwebsockets.* >/dev/null 2>&1; then
		libs="-L$libdir -Wl,-rpath,$libdir -lwebsockets"
	else
		fail "there is no libwebsockets.a or .so in LWS_PREFIX=$LWS_PREFIX/lib"
	fi
else
	"$PKG_CONFIG" --exists libwebsockets 2>/dev/null ||
		fail "libwebsockets is not installed, or pkg-config does not know it"
	# -isystem: no warnings about the library's headers
	cflags=$("$PKG_CONFIG" --cflags libwebsockets | sed 's/\(^\| \)-I/\1-isystem /g')
	libs=$("$PKG_CONFIG" --libs libwebsockets)
fi

case ${1:-} in
cflags) echo "$cflags" ;;
libs) echo "$libs" ;;
check)
	found=$(printf '%s\n' '#include <lws_config.h>' \
		'btref_version LWS_LIBRARY_VERSION_MAJOR LWS_LIBRARY_VERSION_MINOR' \
		'#ifdef LWS_WITH_COMPRESSED_BACKTRACES' 'btref_feature' '#endif' |
		$CC $cflags -E -P -x c - 2>/dev/null) || fail "$CC can't read lws_config.h"
	set -- $(echo "$found" | sed -n 's/^btref_version //p')
	if [ "${1:-0}" -lt 4 ] || { [ "$1" -eq 4 ] && [ "${2:-0}" -lt 4 ]; }; then
		fail "the libwebsockets found is ${1:-?}.${2:-?}, which is older than 4.4"
	fi
	case $found in
	*btref_feature*) ;;
	*) fail "the libwebsockets found lacks LWS_WITH_COMPRESSED_BACKTRACES" ;;
	esac ;;
*)
	echo "usage: find-lws.sh cflags|libs|check" >&2
	exit 2 ;;
esac
