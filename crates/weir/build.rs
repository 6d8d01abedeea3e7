//! Passes the name of the build profile to the crate; `-vv` prints it. Must never generate anything that the program
//! depends on.

#![allow(clippy::print_stdout)] // This is how a build script speaks to cargo.

use std::path::Path;

fn main() {
    // target/<profile>/build/<package>/out: Cargo's variable `PROFILE` is only `debug` or `release`.
    let folder = std::env::var("OUT_DIR").unwrap_or_default();
    let profile = Path::new(&folder).ancestors().nth(3).and_then(Path::file_name);
    let profile = profile.map_or_else(|| "unknown".into(), std::ffi::OsStr::to_string_lossy);
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=WEIR_PROFILE={profile}");
}
