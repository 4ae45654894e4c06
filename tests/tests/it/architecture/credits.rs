//! Checks that one module of the store changes credits.

use std::fs;
use std::path::Path;

/// What changes lots or the ledger.
const CHANGES: [&str; 9] = [
    "ledger::ActiveModel",
    "ledger::Entity::insert",
    "ledger::Entity::update",
    "ledger::Entity::delete",
    "lot::ActiveModel",
    "lot::Entity::insert",
    "lot::Entity::update",
    "lot::Entity::delete",
    "into_active_model",
];

#[test]
fn only_the_credits_module_changes_lots_and_ledger() {
    let src = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/store/src"));
    let (mut directories, mut inside, mut outside) = (vec![src.to_owned()], 0, Vec::new());
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let changes = CHANGES.iter().filter(|change| text.contains(**change));
            if path.starts_with(src.join("credits")) {
                inside += changes.count();
            } else {
                outside.extend(changes.map(|change| format!("{}: {change}", path.display())));
            }
        }
    }
    assert!(inside >= 3, "the changes were not found in credits/: have the names changed?");
    assert!(outside.is_empty(), "only crates/store/src/credits may do this:\n{}", outside.join("\n"));
}
