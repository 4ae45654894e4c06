//! The files that are made of a page, and what they are made for.

use super::{CaptureSpec, FileKind};

impl CaptureSpec {
    /// The files that are made of the page, in the order of [`FileKind::ALL`]: those that were asked for, and those that evidence
    /// has.
    pub fn page_files(&self) -> Vec<FileKind> {
        let mut files: Vec<FileKind> = self.also.iter().copied().filter(|kind| kind.is_of_page()).collect();
        files.extend(self.evidence_files());
        files.sort_unstable();
        files.dedup();
        files
    }

    /// The files of the page that the signed package has.
    pub fn evidence_files(&self) -> impl Iterator<Item = FileKind> {
        let is_made = self.evidence;
        [FileKind::Mhtml, FileKind::Report].into_iter().filter(move |_| is_made)
    }

    /// Whether a report is made.
    pub fn has_report(&self) -> bool {
        self.evidence || self.also.contains(&FileKind::Report)
    }
}

#[cfg(test)]
mod tests {
    use super::super::CaptureRequest;
    use super::*;

    #[test]
    fn evidence_has_files_of_its_own() {
        let spec = |also: &[&str], evidence| {
            let also = Some(also.iter().map(|kind| (*kind).to_owned()).collect());
            let request =
                CaptureRequest { url: Some("https://example.com/".into()), also, ..CaptureRequest::default() };
            CaptureSpec::parse(&CaptureRequest { evidence, ..request }).unwrap()
        };
        let packed = [FileKind::Mhtml, FileKind::Report];
        assert_eq!(spec(&[], Some(true)).page_files(), packed);
        assert_eq!(spec(&["report"], Some(true)).page_files(), packed);
        let more = spec(&["html", "pdf"], Some(true));
        assert_eq!(more.page_files(), [FileKind::Html, FileKind::Mhtml, FileKind::Pdf, FileKind::Report]);
        assert!(more.has_report() && !spec(&["html"], None).has_report());
        assert_eq!(spec(&["marks"], None).page_files(), [FileKind::Elements]);
        assert_eq!(spec(&[], Some(false)), spec(&[], None));
    }
}
