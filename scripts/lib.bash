# What the scripts beside this file share. Sourced by them, with `root` set to the folder of the workspace.
# shellcheck shell=bash
: "${root:?}"

complain() {
    printf 'scripts/%s: %s\n' "${0##*/}" "$*" >&2
}

# Ends the script with one line that says what to do.
fail() {
    complain "$@"
    exit 1
}

# need COMMAND WHAT-TO-DO: ends the script where COMMAND is missing.
need() {
    command -v "$1" >/dev/null || fail "$1 is missing: $2"
}

need_rust() {
    need cargo 'install Rust (rust-version in Cargo.toml, or newer), see https://rustup.rs'
    need cc 'install a C compiler and linker, for example: apt-get install gcc'
}

# build_programs CARGO-ARGUMENT…: builds the workspace and sets `programs` to the folder of its programs.
# Cargo itself says where: CARGO_TARGET_DIR, CARGO_BUILD_TARGET and .cargo/config.toml may all move it.
build_programs() {
    programs=$(
        cd "$root" && cargo build --workspace "$@" --message-format json-render-diagnostics |
            sed -n 's|.*"executable":"\([^"]*\)/supervisor".*|\1|p'
    ) || {
        complain 'the build failed: the first error above says where'
        return 1
    }
    [[ -x $programs/supervisor && -x $programs/prover ]] || {
        complain 'cargo did not say where it put supervisor and prover'
        return 1
    }
}

# json_field NAME: prints the first value of that name in the JSON document on standard input, strings without their
# quotes. For documents of our own programs, which write the outermost names before nested ones.
json_field() {
    local document
    document=$(cat)
    [[ $document =~ \"$1\"[[:space:]]*:[[:space:]]*(\"([^\"]*)\"|[^,}[:space:]]+) ]] || return 1
    printf '%s\n' "${BASH_REMATCH[2]:-${BASH_REMATCH[1]}}"
}

# Seconds since START, which is a value of EPOCHREALTIME, with one decimal.
seconds_since() {
    local micros=$((${EPOCHREALTIME/[.,]/} - ${1/[.,]/}))
    printf '%d.%d\n' $((micros / 1000000)) $((micros % 1000000 / 100000))
}
