#!/usr/bin/env bash
# Bars 3 to 6 on a machine with a GPU.
# usage: run_all.sh [compare] [speed] [robust] [soak]     (default: all; see README.md)
# compare and speed have the GPU to themselves; the soak runs beside robust.
# Everything printed is also in $OUT/bars.log, the figures in $OUT/NAME.jsonl.
set -uo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$HERE/../../.." && pwd)
export OUT=${OUT:-.}
export ASHLAR_LIBRARY=${ASHLAR_LIBRARY:-$ROOT/bin/gpu/libashlar.so}
export PYTHONUNBUFFERED=1
LOG=$OUT/bars.log
# Seconds for each.
COMPARE_S=${COMPARE_S:-235} SPEED_S=${SPEED_S:-120} ROBUST_S=${ROBUST_S:-200} SOAK_S=${SOAK_S:-480}

FAILED=()
bar() { # name, seconds until it is stopped by force, command
  local name=$1 limit=$2 rc
  shift 2
  echo
  echo "== $name (at ${SECONDS} s)"
  timeout -k 5 "$limit" "$@"
  rc=$?
  ((rc == 0)) || FAILED+=("$name: exit status $rc")
}

main() {
  local wanted=("$@") name soak_pid=""
  ((${#wanted[@]})) || wanted=(compare speed robust soak)
  for name in "${wanted[@]}"; do
    case $name in
    compare | speed | robust | soak) ;;
    *)
      echo "run_all.sh: there is no '$name'; there are compare, speed, robust, soak"
      return 2
      ;;
    esac
  done
  if [[ ! -f $ASHLAR_LIBRARY ]]; then
    echo "run_all.sh: there is no library at $ASHLAR_LIBRARY (see README.md)"
    return 2
  fi
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | sed 's/^/gpu, driver: /'
  echo "cpus: $(nproc); library: $(sha256sum "$ASHLAR_LIBRARY" | cut -c1-16)"
  python3 -B "$HERE/bars.py" --selftest || return 1

  local all=" ${wanted[*]} "
  [[ $all == *" compare "* ]] && bar compare $((COMPARE_S + 25)) python3 -B "$HERE/compare.py" --budget "$COMPARE_S"
  [[ $all == *" speed "* ]] && bar speed $((SPEED_S + 25)) python3 -B "$HERE/speed.py" --budget "$SPEED_S"
  if [[ $all == *" soak "* ]]; then
    timeout -k 5 $((SOAK_S + 100)) python3 -B "$HERE/soak.py" --seconds "$SOAK_S" >"$TMP/soak.txt" 2>&1 &
    soak_pid=$!
  fi
  [[ $all == *" robust "* ]] && bar robust $((ROBUST_S + 25)) python3 -B "$HERE/robust.py" --budget "$ROBUST_S"
  if [[ -n $soak_pid ]]; then
    wait "$soak_pid"
    local rc=$?
    echo
    echo "== soak (at ${SECONDS} s)"
    cat "$TMP/soak.txt"
    ((rc == 0)) || FAILED+=("soak: exit status $rc")
  fi
  echo
  if ((${#FAILED[@]})); then
    printf 'run_all.sh: NOT MET: %s\n' "${FAILED[@]}"
    return 1
  fi
  echo "run_all.sh: every bar was met: ${wanted[*]}"
}

mkdir -p "$OUT"
TMP=$(mktemp -d) || exit 1
trap 'rm -rf "$TMP"' EXIT
main "$@" 2>&1 | tee "$LOG"
exit "${PIPESTATUS[0]}"
