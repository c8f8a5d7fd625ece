# Sourced by the scripts of this folder: where the project is, how they speak, how a build directory is configured.
# Not to be run by itself.

project_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Meson puts the default compiler behind ccache, but none that CC or a cross file names. Unity builds name files by whole paths: what
# is exported here, and -ffile-prefix-map in those builds, lets one clone have what another compiled.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$project_root} CCACHE_NOHASHDIR=1
compiler_cache() { ! command -v ccache >/dev/null || echo ccache; }

say() { printf '==> %s\n' "$*"; }
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# configure_build DIR OPTION...: sets DIR up, or brings its options up to date where it exists. A directory that another
# version of Meson left, or that was copied from elsewhere, is made anew.
configure_build() {
  local dir=$1
  shift
  if [[ -f $dir/build.ninja ]]; then
    meson setup --reconfigure "$@" "$dir" "$project_root" >"$dir/configure.log" 2>&1 && return 0
    say "$dir cannot be used any more: making it anew"
  fi
  rm -rf "$dir"
  mkdir -p "$dir"
  if ! meson setup "$@" "$dir" "$project_root" >"$dir/configure.log" 2>&1; then
    tail -n 30 "$dir/configure.log" >&2
    return 1
  fi
}
