//! Checks that no two files of a package use each other, and no two of its folders, directly or through others, so that each
//! can be read without those that use it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::imports::Sources;
use super::{shipped_packages, workspace};

/// Folders, or files directly below `src`, that may be on a circle with others, by package, and the reason.
const FOLDERS: [(&str, &str, &str); 3] = [
    ("grabd-engine", "service", "the service is built from all parts, and each use case gets the whole service"),
    ("grabd-web", "state", "the shared state has the parts of all pages, and each page gets the whole state"),
    ("grabd-browser", "process", "to be divided: options, jail and process are started with what each of them defines"),
];
/// Folders whose files may be on a circle, by package, and the reason.
const FILES: [(&str, &str, &str); 2] = [
    ("grabd-browser", "page", "to be divided by the steps of a capture, which use the state of the capture"),
    ("grabd-browser", "supervisor", "to be divided: a lease of a slot ends through the state of all slots"),
];

/// What uses what, with a path by which it does.
type Uses<'a> = BTreeMap<&'a Path, BTreeMap<&'a Path, String>>;

#[test]
fn files_of_a_package_do_not_use_each_other() {
    let mut circles = Vec::new();
    for package in shipped_packages(&workspace()) {
        let src = package.manifest_path.parent().unwrap().join("src");
        let sources = Sources::read(src.as_std_path());
        let is_excepted = |file: &Path| {
            let folder = folder_of(src.as_std_path(), file);
            FILES.iter().any(|(name, it, _)| package.name == *name && folder == Path::new(it))
        };
        let mut uses = sources.uses();
        uses.retain(|file, _| !is_excepted(file));
        circles.extend(lines_of_circles(&package.name, src.as_std_path(), &uses));
    }
    assert!(circles.is_empty(), "these files use each other:\n{}", circles.join("\n"));
}

#[test]
fn folders_of_a_package_do_not_use_each_other() {
    let mut circles = Vec::new();
    for package in shipped_packages(&workspace()) {
        let src = package.manifest_path.parent().unwrap().join("src");
        let sources = Sources::read(src.as_std_path());
        let is_excepted =
            |folder: &Path| FOLDERS.iter().any(|(name, it, _)| package.name == *name && folder == Path::new(it));
        let folders: BTreeMap<&Path, PathBuf> =
            sources.files().map(|file| (file, folder_of(src.as_std_path(), file))).collect();
        let mut uses: Uses = BTreeMap::new();
        for (user, used) in sources.uses() {
            for (used, path) in used {
                let (from, to) = (folders[user].as_path(), folders[used].as_path());
                if from != to && !is_excepted(from) && !is_excepted(to) {
                    let name = user.strip_prefix(&src).unwrap_or(user).display();
                    uses.entry(from).or_default().entry(to).or_insert_with(|| format!("{name}: {path}"));
                }
            }
        }
        circles.extend(lines_of_circles(&package.name, src.as_std_path(), &uses));
    }
    assert!(circles.is_empty(), "these folders use each other:\n{}", circles.join("\n"));
}

/// The folder directly below `src` that a file is in, or the name of a file directly below it. A file `a.rs` and the folder
/// `a/` are one.
fn folder_of(src: &Path, file: &Path) -> PathBuf {
    let file = file.strip_prefix(src).expect("below src");
    let first = file.iter().next().expect("a name");
    Path::new(first).with_extension("")
}

/// A line for each use between what is on a circle.
fn lines_of_circles(package: &str, src: &Path, uses: &Uses) -> Vec<String> {
    let tied = tied(uses);
    let name = |file: &Path| file.strip_prefix(src).unwrap_or(file).display().to_string();
    let pairs = uses.iter().flat_map(|(user, used)| used.iter().map(move |(used, path)| (*user, *used, path)));
    pairs
        .filter(|(user, used, _)| tied.contains(user) && tied.contains(used))
        .map(|(user, used, path)| format!("{package}: {} uses {}: {path}", name(user), name(used)))
        .collect()
}

/// What is on a circle, or between two circles.
fn tied<'a>(uses: &Uses<'a>) -> BTreeSet<&'a Path> {
    let mut tied: BTreeSet<&Path> = uses.keys().copied().collect();
    loop {
        let used: BTreeSet<&Path> =
            uses.iter().filter(|(user, _)| tied.contains(*user)).flat_map(|(_, used)| used.keys().copied()).collect();
        let is_tied = |file: &&Path| {
            used.contains(file) && uses.get(*file).is_some_and(|used| used.keys().any(|used| tied.contains(used)))
        };
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

#[test]
fn folder_is_the_first_name_below_src() {
    for (file, folder) in [("src/a/b/c.rs", "a"), ("src/a/mod.rs", "a"), ("src/a.rs", "a"), ("src/lib.rs", "lib")] {
        assert_eq!(folder_of(Path::new("src"), Path::new(file)), Path::new(folder), "{file}");
    }
}
