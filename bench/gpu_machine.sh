#!/bin/sh
# Runs `python -m bench gpu` on a machine with a GPU that cannot download anything.
#
#   sh bench/gpu_machine.sh fetch WHEELS 3.12   with a network: wheels for that Python, PyCUDA's source
#   sh bench/gpu_machine.sh build WHEELS SITE   there, or where its Python and CUDA's toolkit are: installs
#                                               them into SITE, leaves PyCUDA's wheel in WHEELS
#   sh bench/gpu_machine.sh run WHEELS OUT      on the machine: build, GPU tests (operators, and the kernels of
#                                               --backend cuda), a run of a file with a race, bench gpu --save
#                                               (models with these kernels, too)
#   sh bench/gpu_machine.sh kernels WHEELS OUT  on the machine, where PyTorch and Triton are: the kept kernels
#                                               of bench mirage beside PyTorch's operators; those of
#                                               WHEELS/tunings.json (bench mirage --tune), if it is there
#   sh bench/gpu_machine.sh before WHEELS PYTHON  without a GPU, where PYTHON has PyTorch and transformers: the
#                                               alternatives that --tune lists, and whole exports, into WHEELS
#   sh bench/gpu_machine.sh all WHEELS OUT      both in about nine minutes (PyCUDA built before), what matters
#                                               most first: the models in float32, TF32 and float16; the kernels,
#                                               those of --tune among them; whole exports and blocks with --fuse;
#                                               racecheck. Each keeps what it has when its time is over
#
# The machine needs Python with its headers, pip, NumPy, a C++ compiler and CUDA's toolkit (nvcc). What
# is not carried must be there: cuda-bindings, NVRTC, hypothesis, pyarrow, rich; cuBLAS and cuDNN may be.
# `run` leaves in OUT the figures, what has been measured (costs.duckdb, gpu-runs*.json) and PyCUDA's wheel.
# Copy the last three into WHEELS, and the next `run` resumes there. It begins nothing new after
# LIMIT_S seconds (300).
set -eu

# What results are compared with is computed by NumPy, in this many threads.
export OPENBLAS_NUM_THREADS="${OPENBLAS_NUM_THREADS:-$(nproc)}"

PYCUDA=2026.1
EXPORTS="minilm-legacy-dynamic vit_tiny-legacy-dynamic resnet50-legacy"
PACKAGES="duckdb highspy<1.16 platformdirs pytools mako markupsafe siphash24 typing-extensions"

fetch() {
    wheels=$1 version=$2 platforms=
    for n in 39 35 34 31 28 27 24 17; do platforms="$platforms --platform manylinux_2_${n}_x86_64"; done
    # shellcheck disable=SC2086 # lists of words
    python3 -m pip download --no-deps --only-binary=:all: --python-version "$version" \
        --implementation cp $platforms --platform manylinux2014_x86_64 -d "$wheels" $PACKAGES
    python3 -m pip download --no-deps --no-binary pycuda -d "$wheels" "pycuda==$PYCUDA"
}

build() {
    wheels=$(cd "$1" && pwd) site=$2
    ls "$wheels"/pycuda-*.whl >/dev/null 2>&1 || build_pycuda "$wheels"
    python3 -m pip install -q --no-index --no-deps --no-compile --upgrade --target "$site" "$wheels"/*.whl
}

# The driver's library is libcuda.so.1; the linker asks for libcuda.so. Where there is no driver, an empty
# library takes its place: the wheel is the same. nvcc says itself where the toolkit is: it may be a
# link or a script of another folder.
build_pycuda() {
    place=$(mktemp -d)
    driver=$(ldconfig -p | awk '/libcuda\.so\.1 / { print $NF; exit }')
    driver=${driver:-/usr/local/nvidia/lib64/libcuda.so.1}
    if [ -e "$driver" ]; then
        ln -s "$driver" "$place/libcuda.so"
    else
        cc -shared -Wl,-soname,libcuda.so.1 -o "$place/libcuda.so" -x c /dev/null
    fi
    root=$(nvcc --dryrun -x cu /dev/null 2>&1 | sed -n 's/^#\$ TOP=//p')
    root=$(cd "$root" && pwd)
    tar xzf "$1"/pycuda-*.tar.gz -C "$place"
    background_compiler "$place"
    (
        cd "$place"/pycuda-*
        # An empty library gives the linker nothing, and would be left out.
        export LDFLAGS="-Wl,--no-as-needed"
        export CUDA_ROOT="$root" PATH="$root/bin:$PATH" CFLAGS="-O1 -g0"
        export CC="$place/compile gcc" CXX="$place/compile g++"
        python3 configure.py --cuda-root="$root" --no-cuda-enable-curand --cudadrv-lib-dir="$place"
        python3 -m pip wheel -q --no-deps --no-index --no-build-isolation -w "$1" .
    )
    rm -r "$place"
}

# Its 40 files are compiled one after the other (70 s). Here the compiler goes on in the background, as
# many at once as there are processors; the linker waits for all of them, and fails where one did.
background_compiler() {
    mkdir "$1/running"
    cat >"$1/compile" <<EOF
#!/bin/sh
case " \$* " in
*" -c "*)
    while [ "\$(ls "$1/running" | wc -l)" -ge "\$(nproc)" ]; do sleep 0.05; done
    touch "$1/running/\$\$"
    ("\$@"; rm "$1/running/\$\$") &
    ;;
*)
    while [ -n "\$(ls "$1/running")" ]; do sleep 0.05; done
    exec "\$@"
    ;;
esac
EOF
    chmod +x "$1/compile"
}

prepare() {
    wheels=$1 out=$2 site=$(mktemp -d)
    mkdir -p "$out"
    for kept in "$wheels"/costs.duckdb "$wheels"/gpu-runs*.json; do
        if [ -f "$kept" ]; then cp "$kept" "$out"; fi
    done
    build "$wheels" "$site"
    cp "$wheels"/pycuda-*.whl "$out"
    PYTHONPATH="$site" && export PYTHONPATH
}

# What --gpu chooses from by time, and the exports that --fuse runs on: both need no GPU, and take long.
before() {
    wheels=$1 python=$2
    mkdir -p "$wheels/exports"
    python3 -m bench mirage --tune 4 --save
    cp "$(ls -d bench/results/mirage-*/tunings.json | tail -n 1)" "$wheels/tunings.json"
    for name in $EXPORTS; do
        PYTHONPATH=. "$python" -m bench.exports.makers "$name" "$wheels/exports"
    done
}

# Each mode resumes from a file of its own.
measure_models() {
    python3 -m bench gpu --save --out "$1" --cost-cache "$1/costs.duckdb" \
        --runs "$1/gpu-runs-$2-$3.json" --math "$2" --dtype "$3" --limit-s "$4" ||
        echo "BENCH GPU --math $2 --dtype $3 FAILED"
}

# Runs a file whole, with kernels that are searched for, and keeps what the run says of both times.
measure_fused() {
    model=$1 out=$2 limit_s=$3
    name=$(basename "$model" .onnx)
    timeout "$limit_s" python3 -m relational_tensat run "$model" --cost cuda --fuse --budget 5 \
        --time-limit 10 --cost-cache "$out/costs.duckdb" -o "$out/fused-$name.onnx" \
        >"$out/fused-$name.txt" 2>&1 || echo "$name --fuse FAILED"
}

# A part is killed when its time is over: files are written aside, and each row is kept when it is there.
all() {
    wheels=$1 out=$2
    prepare "$wheels" "$out"
    measure_models "$out" fp32 float32 120
    measure_models "$out" tf32 float32 50
    measure_models "$out" fp32 float16 60
    (LIMIT_S=110 && kernels "$wheels" "$out") || echo "THE KERNELS FAILED"
    for model in "$wheels"/exports/*.onnx; do
        if [ -f "$model" ]; then measure_fused "$model" "$out" 30; fi
    done
    for model in bench/inputs/*.onnx; do measure_fused "$model" "$out" 12; done
    timeout 50 compute-sanitizer --tool racecheck python3 -m bench mirage "LoRA 1" \
        --gpu "$out/benchmarks.json" --no-timing >"$out/racecheck.txt" 2>&1 || echo "RACECHECK FAILED"
}

run() {
    wheels=$1 out=$2
    prepare "$wheels" "$out"
    # another pytest, NumPy or PyTorch warns of other things
    python3 -m pytest -m gpu tests/gpu -p no:cacheprovider -o filterwarnings=default -n 4 ||
        echo "GPU TESTS FAILED"
    python3 -m relational_tensat run bench/inputs/transformer_block.onnx --cost cuda --backend cuda \
        --budget 10 --cost-cache "$out/costs.duckdb" -o "$out/run.onnx" || echo "THE RUN FAILED"
    measure_models "$out" fp32 float32 "${LIMIT_S:-300}"
}

# The result is written beside the kept benchmarks: a copy of these. Each benchmark is compared first in a
# process of its own, many at once, which also compiles its kernels: a fault of one ends no other.
kernels() {
    wheels=$1 out=$2 site=$(mktemp -d)
    mkdir -p "$out"
    kept=$(ls -d bench/results/mirage-*/benchmarks.json | tail -n 1)
    if [ -f "$wheels/tunings.json" ]; then kept=$wheels/tunings.json; fi
    cp "$kept" "$out/benchmarks.json"
    python3 -m pip install -q --no-index --no-deps --no-compile --target "$site" \
        $(ls "$wheels"/*.whl | grep -v pycuda)
    PYTHONPATH="$site" && export PYTHONPATH
    python3 -c 'import json, sys
for run in json.load(open(sys.argv[1]))["runs"]: print(run["search"]["case"])' "$out/benchmarks.json" |
        sort -u | xargs -d '\n' -P 12 -I{} sh -c 'timeout 120 python3 -m bench mirage "$1" --gpu "$2" \
            --no-timing >"$3/compared-$(printf %s "$1" | tr -c "[:alnum:]" -).txt" 2>&1 || echo "$1: FAILED"' \
            _ {} "$out/benchmarks.json" "$out" || true
    python3 -m bench mirage --gpu "$out/benchmarks.json" --save --limit-s "${LIMIT_S:-300}"
}

case "${1:-}" in
fetch | build | before | run | kernels | all) "$@" ;;
*) sed -n '2,26s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
