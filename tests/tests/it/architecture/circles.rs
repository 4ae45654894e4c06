//! Checks that no two files of a package use each other, directly or through others, so that each can be read without
//! those that use it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::imports::Sources;
use super::{shipped_packages, workspace};

#[test]
fn files_of_a_package_do_not_use_each_other() {
    let mut circles = Vec::new();
    for package in shipped_packages(&workspace()) {
        let src = package.manifest_path.parent().unwrap().join("src");
        let sources = Sources::read(src.as_std_path());
        let uses = sources.uses();
        let tied = tied(&uses);
        for (user, used) in uses.iter().filter(|(user, _)| tied.contains(*user)) {
            let name = |file: &Path| file.strip_prefix(&src).unwrap_or(file).display().to_string();
            for (used, path) in used.iter().filter(|(used, _)| tied.contains(*used)) {
                circles.push(format!("{}: {} uses {}: {path}", package.name, name(user), name(used)));
            }
        }
    }
    assert!(circles.is_empty(), "these files use each other:\n{}", circles.join("\n"));
}

/// The files on a circle, or between two circles.
fn tied<'a>(uses: &BTreeMap<&'a Path, BTreeMap<&'a Path, String>>) -> BTreeSet<&'a Path> {
    let mut tied: BTreeSet<&Path> = uses.keys().copied().collect();
    loop {
        let used: BTreeSet<&Path> =
            uses.iter().filter(|(user, _)| tied.contains(*user)).flat_map(|(_, used)| used.keys().copied()).collect();
        let is_tied = |file: &&Path| used.contains(file) && uses[file].keys().any(|used| tied.contains(used));
        let rest: BTreeSet<&Path> = tied.iter().copied().filter(is_tied).collect();
        if rest.len() == tied.len() {
            return tied;
        }
        tied = rest;
    }
}

#[test]
fn tied_is_what_lies_on_circles() {
    let [a, b, c, d] = ["a", "b", "c", "d"].map(Path::new);
    let to = |files: &[&'static Path]| files.iter().map(|file| (*file, String::new())).collect::<BTreeMap<_, _>>();
    let uses = BTreeMap::from([(a, to(&[b])), (b, to(&[c])), (c, to(&[b, d]))]);
    assert_eq!(tied(&uses), BTreeSet::from([b, c]));
    let without = BTreeMap::from([(a, to(&[b])), (b, to(&[c])), (c, to(&[d]))]);
    assert_eq!(tied(&without), BTreeSet::new());
}
