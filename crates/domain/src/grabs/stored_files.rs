//! The stored form of the attachments. Kinds of a later version are skipped.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::file::{FileKey, GrabFile};
use crate::capture::FileKind;

#[derive(Serialize, Deserialize)]
struct Stored {
    kind: String,
    key: String,
    bytes: u64,
}

pub(super) fn serialize<S: Serializer>(files: &[GrabFile], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(files.iter().map(|GrabFile { kind, key, bytes }| Stored {
        kind: kind.as_str().to_owned(),
        key: key.as_str().to_owned(),
        bytes: *bytes,
    }))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<GrabFile>, D::Error> {
    let read = |Stored { kind, key, bytes }: Stored| {
        Some(GrabFile { kind: FileKind::parse(&kind)?, key: FileKey::parse(&key)?, bytes })
    };
    Ok(Vec::<Stored>::deserialize(deserializer)?.into_iter().filter_map(read).collect())
}
