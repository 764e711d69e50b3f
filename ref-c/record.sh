#!/bin/sh
# Builds btref for each build of builds.txt, and records or compares its output.
#   record.sh regen PREFIXES SOURCE        writes vectors/NAME.btv and vectors/capture-NAME.btv
#   record.sh measured PREFIXES DIRECTORY  compares blobs with DIRECTORY/NAME.tsv
# A line of NAME.tsv is size, addresses and blob, in hex, with tabs between.
set -eu
what=$1 prefixes=$2 third=$3
tab=$(printf '\t')
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

fail() {
	echo "ref-c: $*" >&2
	exit 1
}

# build PLATFORM LINKER-FLAGS builds btref in build/PLATFORM. Callers link it statically,
# because emulators have trouble with dynamic programs and captures need fixed addresses.
build() {
	make -s OUT="build/$1" PLATFORM="$1" LDFLAGS="$2 -Wl,--no-warnings" LWS_PREFIX="$prefixes/$name" CC="$cc" \
		OPTIONS="$options" </dev/null
}

if [ "$what" = regen ]; then
	for word in 64 32; do
		go run ./stacks $word >"$tmp/stacks$word"
	done
	mkdir -p vectors
fi

grep -v '^#' builds.txt >"$tmp/builds"
while IFS=$tab read -r name cc options word run capture; do
	[ "$run" != - ] || run=
	[ -d "$prefixes/$name" ] || fail "there is no $prefixes/$name; builds.txt says what it holds"
	build "$name" "-static"
	btref=build/$name/btref

	if [ "$what" = measured ]; then
		[ -f "$third/$name.tsv" ] || fail "there is no $third/$name.tsv"
		awk -F'\t' '{ printf "line-%d\t%s\t%s\n", NR, $1, $2 == "" ? "-" : $2 }' \
			"$third/$name.tsv" >"$tmp/stacks"
		$run "$btref" vectors <"$tmp/stacks" >"$tmp/btv"
		sed -n 's/^hex: //p' "$tmp/btv" >"$tmp/got"
		cut -f3 "$third/$name.tsv" >"$tmp/want"
		diff "$tmp/want" "$tmp/got" >"$tmp/diff" || {
			head -4 "$tmp/diff" >&2
			fail "$name: blobs differ from $third/$name.tsv"
		}
		[ -s "$tmp/got" ] || fail "$third/$name.tsv is empty"
		echo "$name: $(wc -l <"$tmp/got") blobs are the same"
		continue
	fi

	$run "$btref" vectors --source "$third" <"$tmp/stacks$word" >"$tmp/btv"
	mv "$tmp/btv" "vectors/$name.btv"
	for how in $capture; do
		case $how in
		fixed)
			$run "$btref" capture --source "$third" </dev/null >"$tmp/btv"
			mv "$tmp/btv" "vectors/capture-$name.btv" ;;
		pie)
			build "$name-pie" "-static-pie"
			setarch -R "build/$name-pie/btref" capture --source "$third" \
				</dev/null >"$tmp/btv"
			mv "$tmp/btv" "vectors/capture-$name-pie.btv" ;;
		esac
	done
	echo "$name: $(grep -c '^id:' "vectors/$name.btv") vectors"
done <"$tmp/builds"
