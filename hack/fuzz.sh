#!/usr/bin/env bash
# fuzz.sh TIME DIRECTORY...: runs each fuzz test below the directories for TIME, as `go test -fuzztime` takes it.
# TIME may also be "N in all": the tests share N seconds evenly.
set -euo pipefail

time=$1
shift
tests=$(grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9]+' "$@" | sed -E 's|^|./|; s|/[^/]*:func | |' | sort -u)
if [[ $time == *" in all" ]]; then
	count=$(wc -l <<<"$tests")
	time=$(((${time% in all} + count - 1) / count))s
fi

output=$(mktemp)
trap 'rm -f "$output"' EXIT

# fuzz runs one test. At the end of -fuzztime Go sometimes reports a false failure (Go issue 75804): "context deadline exceeded"
# without a failing input.
fuzz() {
	local package=$1 name=$2
	echo "$package $name"
	if go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" "$package" </dev/null 2>&1 | tee "$output"; then
		return
	fi
	if ! grep -qx ' *context deadline exceeded' "$output" || grep -qE 'Failing input|panic|hung or terminated' "$output"; then
		return 1
	fi
	echo "$package $name: found nothing until the time was over"
}

while read -r package name; do
	fuzz "$package" "$name"
done <<<"$tests"
