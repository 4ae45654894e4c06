//! Checks that the table of audited actions has what the store records, and nothing else.

use std::fs;
use std::path::Path;

use grabd_domain::audit::AuditAction;

/// What an entry begins with, before the name of the action.
const NEW_ENTRY: &str = "AuditEvent::new(";

#[test]
fn table_of_actions_has_what_the_store_records() {
    let src = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/store/src"));
    let (mut directories, mut sources) = (vec![src.to_owned()], String::new());
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => directories.push(path),
                false => sources.push_str(&fs::read_to_string(&path).unwrap()),
            }
        }
    }
    let mut recorded = 0;
    for entry in sources.split(NEW_ENTRY).skip(1) {
        // Some names are in a variable: the second check finds those.
        let Some(name) = entry.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next()) else { continue };
        recorded += 1;
        assert!(AuditAction::find(name).is_some(), "{name} is not in the table in crates/domain/src/audit.rs");
    }
    assert!(recorded > 30, "the entries were not found: has {NEW_ENTRY} changed?");
    for action in AuditAction::ALL {
        assert!(sources.contains(&format!("\"{}\"", action.name)), "{} is recorded nowhere", action.name);
    }
}
