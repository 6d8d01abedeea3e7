//! Passes the name of the build profile on, which `-vv` prints. Must never make anything that the program depends on.

#![allow(clippy::print_stdout)] // This is how a build script speaks to cargo.

use std::path::Path;

fn main() {
    // target/<profile>/build/<package>/out: the environment has only what a profile inherits from.
    let folder = std::env::var("OUT_DIR").unwrap_or_default();
    let profile = Path::new(&folder).ancestors().nth(3).and_then(Path::file_name);
    let profile = profile.map_or_else(|| "unknown".into(), std::ffi::OsStr::to_string_lossy);
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=WEIR_PROFILE={profile}");
}
