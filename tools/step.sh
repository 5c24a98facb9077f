#!/bin/sh
# Runs one step of `make test`: says what it is, and how many seconds it took.
name=$1
shift
echo "── $name"
start=$(date +%s)
"$@"
status=$?
seconds=$(($(date +%s) - start))
[ $status -eq 0 ] && echo "── $name: passed in $seconds s" || echo "── $name: FAILED after $seconds s"
exit $status
