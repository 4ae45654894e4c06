//! Filter lists, by which ads, trackers, chat widgets and share bars are blocked.
//!
//! The operator puts lists in the syntax of EasyList into a directory. They are parsed once, at start, and shared by all
//! grabs. `list` is one list. `blocklist` applies lists, and counts, for one grab. `names` are what a list is asked for. The
//! lists of chat widgets and share bars are `built_in`.

mod blocklist;
mod built_in;
mod error;
mod list;
mod names;

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use grabd_domain::capture::BlockedContent;

pub(crate) use self::blocklist::Blocklist;
pub use self::error::ListError;
use self::error::MAX_BYTES;
use self::list::List;
pub(crate) use self::names::PageNames;

/// The files, and the content that they block.
const FILES: [(&str, BlockedContent); 2] =
    [("ads.txt", BlockedContent::Ads), ("trackers.txt", BlockedContent::Trackers)];

/// The lists of the operator.
#[derive(Default)]
pub struct FilterLists {
    ads: Option<List>,
    trackers: Option<List>,
}

/// The result of reading one file.
#[derive(Debug)]
pub struct ListReport {
    /// The file.
    pub path: PathBuf,
    /// What it blocks.
    pub content: BlockedContent,
    /// The number of its rules, or why they are not used. `None` if there is no such file.
    pub outcome: Option<Result<usize, ListError>>,
}

impl FilterLists {
    /// Reads and parses the lists in a directory. Takes a few seconds for EasyList and EasyPrivacy. A file that is missing
    /// or broken is reported, and what it would block cannot be blocked.
    pub fn read(directory: &Path) -> (Self, Vec<ListReport>) {
        let mut lists = Self::default();
        let reports = FILES.map(|(name, content)| {
            let path = directory.join(name);
            let outcome = match read(&path) {
                Ok(None) => None,
                Ok(Some(text)) => Some(List::parse(text).map(|list| {
                    let rules = list.rules();
                    match content {
                        BlockedContent::Ads => lists.ads = Some(list),
                        BlockedContent::Trackers => lists.trackers = Some(list),
                        BlockedContent::CookieBanners | BlockedContent::Chats | BlockedContent::Social => {}
                    }
                    rules
                })),
                Err(error) => Some(Err(error)),
            };
            ListReport { path, content, outcome }
        });
        (lists, reports.into())
    }

    /// The content for which there is a list of the operator.
    pub fn contents(&self) -> Vec<BlockedContent> {
        let lists = [(BlockedContent::Ads, &self.ads), (BlockedContent::Trackers, &self.trackers)];
        lists.into_iter().filter(|(_, list)| list.is_some()).map(|(content, _)| content).collect()
    }
}

impl fmt::Debug for FilterLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FilterLists").field(&self.contents()).finish()
    }
}

/// `None` if there is no such file.
fn read(path: &Path) -> Result<Option<String>, ListError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_BYTES {
        return Err(ListError::TooLarge);
    }
    String::from_utf8(bytes).map(Some).map_err(|_| ListError::NotText)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_files_are_reported_and_the_others_are_used() {
        let directory = tempfile::tempdir().unwrap();
        let outcomes = |ads: Option<&[u8]>, trackers: &[u8]| {
            match ads {
                Some(ads) => std::fs::write(directory.path().join("ads.txt"), ads).unwrap(),
                None => drop(std::fs::remove_file(directory.path().join("ads.txt"))),
            }
            std::fs::write(directory.path().join("trackers.txt"), trackers).unwrap();
            let (lists, reports) = FilterLists::read(directory.path());
            let outcomes: Vec<String> = reports
                .into_iter()
                .map(|report| match report.outcome {
                    None => "absent".to_owned(),
                    Some(Ok(rules)) => rules.to_string(),
                    Some(Err(error)) => error.to_string(),
                })
                .collect();
            (lists.contents(), outcomes)
        };
        let tracker = b"[Adblock Plus 2.0]\n! Title: x\n||t.example^\n\n";
        let (contents, found) = outcomes(None, tracker);
        assert_eq!((contents, found), (vec![BlockedContent::Trackers], vec!["absent".to_owned(), "1".to_owned()]));
        for (broken, problem) in [
            (&b"<!doctype html><title>404</title>"[..], "it is a web page, not a list in the syntax of EasyList"),
            (b"! only comments\n\n", "it has no rules in the syntax of EasyList"),
            (b"\xff\xfe\x00", "it is not UTF-8 text"),
        ] {
            let (contents, found) = outcomes(Some(broken), tracker);
            assert_eq!((contents, found[0].as_str()), (vec![BlockedContent::Trackers], problem));
        }
        let (contents, found) = outcomes(Some(&vec![b'a'; (32 << 20) + 1]), tracker);
        assert_eq!((contents.len(), found[0].as_str()), (1, "it has more than 32 MB"));
    }
}
