#!/usr/bin/env bash
# Times torch's CUDA caching allocator and ours on one machine, in alternation.
# usage: run.sh GO_TEST_BINARY      (see README.md)
# Writes everything it prints also to ${OUT:-.}/bench.log.
set -uo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
LOG=${OUT:-.}/bench.log
CXX=${CXX:-g++}
ROUNDS=${ROUNDS:-2}
BENCHTIME=${BENCHTIME:-0.5s}
COUNT=${COUNT:-3}
BUDGET_S=${BUDGET_S:-235} # past this nothing new is started and what runs is stopped

die() {
  echo "run.sh: FAILED: $*"
  exit 1
}

# Prints shell assignments about the installed torch; needs only python3.
probe_torch() {
  python3 - <<'PY'
import glob, os, shlex, shutil, sys

def put(name, value):
    print(f"{name}={shlex.quote(str(value))}")

try:
    import torch
except Exception as e:
    put("TORCH_ERROR", f"python3 cannot import torch: {e!r}")
    sys.exit(0)

root = os.path.dirname(os.path.abspath(torch.__file__))
site = os.path.dirname(root)
put("TORCH_VERSION", torch.__version__)
put("TORCH_CUDA", torch.version.cuda)
put("TORCH_INC", os.path.join(root, "include"))
put("TORCH_LIB", os.path.join(root, "lib"))
try:
    abi = torch.compiled_with_cxx11_abi()
except Exception:
    abi = getattr(torch._C, "_GLIBCXX_USE_CXX11_ABI", True)
put("TORCH_ABI", int(bool(abi)))
put("TORCH_GPU", int(torch.cuda.is_available()))

homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
nvcc = shutil.which("nvcc")
if nvcc:
    homes.append(os.path.dirname(os.path.dirname(os.path.realpath(nvcc))))
homes += ["/usr/local/cuda"] + sorted(glob.glob("/usr/local/cuda-*"), reverse=True)
homes = [h for h in homes if h]
wheels = [os.path.join(site, "nvidia", d) for d in ("cu13", "cuda_runtime")]
wheels += sorted(glob.glob(os.path.join(site, "nvidia", "*")))

def unique(paths):
    return list(dict.fromkeys(p for p in paths if os.path.isdir(p)))

# Headers: a toolkit first (it is complete), then what the wheels carry.
inc = []
for h in homes:
    inc.append(os.path.join(h, "include"))
    inc += glob.glob(os.path.join(h, "targets", "*", "include"))
inc += [os.path.join(w, "include") for w in wheels] + ["/usr/include"]
inc = unique(inc)
put("CUDA_INCS", "\n".join(d for d in inc if os.path.exists(os.path.join(d, "cuda_runtime_api.h"))))
put("CUDA_INCS_ALL", "\n".join(
    d for d in inc if d != "/usr/include" and any(
        os.path.exists(os.path.join(d, f))
        for f in ("cuda_runtime_api.h", "cuda.h", "crt/host_defines.h"))))

# libcudart: the one torch itself has loaded, else look for it.
cudart = ""
try:
    with open("/proc/self/maps") as f:
        for line in f:
            path = line.split(None, 5)[-1].strip()
            if os.path.basename(path).startswith("libcudart") and os.path.exists(path):
                cudart = path
                break
except OSError:
    pass
if not cudart:
    libs = [os.path.join(root, "lib")] + [os.path.join(w, "lib") for w in wheels]
    for h in homes:
        libs.append(os.path.join(h, "lib64"))
        libs += glob.glob(os.path.join(h, "targets", "*", "lib"))
    for d in unique(libs):
        found = sorted(glob.glob(os.path.join(d, "libcudart*.so*")), key=len)
        if found:
            cudart = found[0]
            break
put("CUDART", cudart)
PY
}

find_headers() { # sets INC_FLAGS to the first set of CUDA headers that compiles
  printf '#include <c10/cuda/CUDACachingAllocator.h>\n#include <c10/cuda/CUDAFunctions.h>\n' >"$TMP/probe.cpp"
  local base=("$CXX" -std=c++20 -fsyntax-only "-D_GLIBCXX_USE_CXX11_ABI=$TORCH_ABI")
  local d
  while IFS= read -r d; do
    [[ -n $d ]] || continue
    INC_FLAGS=(-I "$TORCH_INC" -I "$d")
    [[ $d == /usr/include ]] && INC_FLAGS=(-I "$TORCH_INC")
    if "${base[@]}" "${INC_FLAGS[@]}" "$TMP/probe.cpp" 2>"$TMP/probe.err"; then
      echo "CUDA headers: $d"
      return 0
    fi
    echo "CUDA headers in $d do not compile: $(grep -m1 error "$TMP/probe.err")"
  done <<<"$CUDA_INCS"
  INC_FLAGS=(-I "$TORCH_INC")
  while IFS= read -r d; do
    [[ -n $d ]] && INC_FLAGS+=(-I "$d")
  done <<<"$CUDA_INCS_ALL"
  if "${base[@]}" "${INC_FLAGS[@]}" "$TMP/probe.cpp" 2>"$TMP/probe.err"; then
    echo "CUDA headers: all folders found, together"
    return 0
  fi
  echo "no usable torch and CUDA headers: $(grep -m1 error "$TMP/probe.err")"
  return 1
}

build() {
  local common=(-O2 -std=c++20 "-D_GLIBCXX_USE_CXX11_ABI=$TORCH_ABI" "$HERE/torch_alloc.cpp" -o "$TMP/torch_alloc" -pthread)
  local link=("$TORCH_LIB/libc10_cuda.so" "$TORCH_LIB/libc10.so" "-Wl,-rpath,$TORCH_LIB" -Wl,--allow-shlib-undefined)
  if [[ -n $CUDART ]]; then
    link+=("$CUDART" "-Wl,-rpath,$(dirname "$CUDART")")
  else
    echo "warning: no libcudart found; relying on the loader"
  fi
  if find_headers; then
    "$CXX" "${INC_FLAGS[@]}" "${common[@]}" "${link[@]}" && return 0
    echo "the build with headers failed (above)"
  fi
  [[ $TORCH_VERSION == 2.11.* ]] || die "no headers build, and the fallback fits torch 2.11 only (found $TORCH_VERSION)"
  echo "building the fallback without headers"
  "$CXX" -DTORCH_ALLOC_NO_HEADERS "${common[@]}" -Wl,--no-as-needed "${link[@]}" -ldl || die "torch_alloc.cpp did not build"
}

FAILED=()
limited() { # label, then a command: runs it within what is left of the budget
  local label=$1 left=$((BUDGET_S - SECONDS)) rc
  shift
  if ((left < 2)); then
    echo "run.sh: NOT RUN (budget of ${BUDGET_S}s is spent): $label"
    FAILED+=("$label: not run")
    return 0
  fi
  echo "--- $label (at ${SECONDS}s)"
  timeout "$left" "$@" | tee -a "$TMP/raw.txt"
  rc=${PIPESTATUS[0]}
  if ((rc == 124)); then
    echo "run.sh: STOPPED at the budget of ${BUDGET_S}s: $label"
    FAILED+=("$label: stopped")
  elif ((rc != 0)); then
    echo "run.sh: exit status $rc: $label"
    FAILED+=("$label: exit status $rc")
  fi
}

main() {
  TMP=$(mktemp -d) || die "mktemp"
  trap 'rm -rf "$TMP"' EXIT
  : >"$TMP/raw.txt"

  local missing=() gobin=${1:-} tool
  for tool in python3 "$CXX" nvidia-smi timeout; do
    command -v "$tool" >/dev/null || missing+=("command $tool")
  done
  if [[ -z $gobin ]]; then
    missing+=("argument 1, the Go test binary (go test -c)")
  elif [[ ! -f $gobin || ! -x $gobin ]]; then
    missing+=("an executable file at '$gobin' (the Go test binary)")
  else
    gobin=$(cd "$(dirname "$gobin")" && pwd)/$(basename "$gobin")
  fi
  TORCH_ERROR="" TORCH_GPU="" CUDART=""
  if command -v python3 >/dev/null; then
    eval "$(probe_torch 2>"$TMP/probe_torch.err")"
    if [[ -n $TORCH_ERROR ]]; then
      missing+=("$TORCH_ERROR")
    elif [[ -z $TORCH_GPU ]]; then
      cat "$TMP/probe_torch.err"
      missing+=("an answer from the torch probe (its error is above)")
    else
      [[ $TORCH_GPU == 1 ]] || missing+=("a GPU that torch can use (torch.cuda.is_available() is false)")
      [[ -f $TORCH_LIB/libc10.so ]] || missing+=("$TORCH_LIB/libc10.so")
      [[ -f $TORCH_LIB/libc10_cuda.so ]] || missing+=("$TORCH_LIB/libc10_cuda.so")
    fi
  fi
  if ((${#missing[@]})); then
    printf 'run.sh: MISSING: %s\n' "${missing[@]}"
    exit 1
  fi

  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sed 's/^/gpu, driver: /'
  echo "torch: $TORCH_VERSION (cuda $TORCH_CUDA, cxx11 abi $TORCH_ABI)"
  echo "cpu: $(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"
  echo "nproc: $(nproc)"
  echo "compiler: $("$CXX" --version | head -n 1)"
  echo "libcudart: ${CUDART:-not found}"

  # Default settings for torch, whatever the environment holds.
  unset PYTORCH_CUDA_ALLOC_CONF PYTORCH_ALLOC_CONF PYTORCH_NO_CUDA_MEMORY_CACHING
  build

  local libs=$TORCH_LIB
  [[ -n $CUDART ]] && libs+=:$(dirname "$CUDART")
  local go=("$gobin" -test.run '^$' -test.benchtime "$BENCHTIME" -test.count "$COUNT") r
  for ((r = 1; r <= ROUNDS; r++)); do
    limited "torch, round $r" env "LD_LIBRARY_PATH=$libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$TMP/torch_alloc"
    limited "go, one core, round $r" "${go[@]}" -test.cpu 1 -test.bench 'HotPair|Window/live=(512|65536-small)|Equal'
    limited "go, goroutines, round $r" "${go[@]}" -test.bench 'Goroutines/^(2|8)$/off'
  done

  echo "--- table (at ${SECONDS}s)"
  python3 "$HERE/table.py" "$TMP/raw.txt" || FAILED+=("table.py: the table is incomplete")
  if ((${#FAILED[@]})); then
    printf 'run.sh: FAILED: %s\n' "${FAILED[@]}"
    exit 1
  fi
}

mkdir -p "$(dirname "$LOG")"
main "$@" 2>&1 | tee "$LOG"
exit "${PIPESTATUS[0]}"
