//! What counts as a change of a page.

use grabd_options::Rectangle;

use super::element_changes::ElementChange;
use super::file_result::{FileResult, FileResults};
use super::text::TextCompare;
use super::text_changes::TextChange;
use crate::grabs::{Grab, RenderMetadata, State};

/// The threshold of a request that names none, in millionths of the image.
pub const THRESHOLD_PPM: u32 = 1000;

/// Something of a page that may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// Its image.
    Image,
    /// The HTTP status of its document.
    Status,
    /// Its text.
    Text,
    /// The elements that a user can operate.
    Elements,
}

impl Change {
    /// All of them, in the order of the API.
    pub const ALL: [Self; 4] = [Self::Image, Self::Status, Self::Text, Self::Elements];

    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Status => "status",
            Self::Text => "text",
            Self::Elements => "elements",
        }
    }
}

/// Which capture later ones are compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Baseline {
    /// The capture of the last change that an alert was sent for.
    #[default]
    Latest,
    /// The capture that somebody accepted.
    Accepted,
}

impl Baseline {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Latest, Self::Accepted];

    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Latest => "latest",
            Self::Accepted => "accepted",
        }
    }

    /// Parses the name in the API.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|baseline| baseline.as_str() == text)
    }
}

/// How images are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageCompare {
    /// The part of the image that may differ, in millionths of its area.
    pub threshold_ppm: u32,
    /// CSS selectors of elements that are made invisible, so that they never differ.
    pub ignore: Vec<String>,
    /// Parts of the image in which nothing counts, in CSS pixels from its top left corner.
    pub ignore_areas: Vec<Rectangle>,
    /// Changes of connected regions with fewer pixels do not count.
    pub min_region_px: u32,
}

impl Default for ImageCompare {
    fn default() -> Self {
        Self { threshold_ppm: THRESHOLD_PPM, ignore: Vec::new(), ignore_areas: Vec::new(), min_region_px: 0 }
    }
}

impl ImageCompare {
    /// The part of the image that may differ, from 0 to 1.
    pub fn threshold_ratio(&self) -> f64 {
        f64::from(self.threshold_ppm) / 1e6
    }
}

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compare {
    /// The images, if so.
    pub image: Option<ImageCompare>,
    /// Whether the HTTP status is.
    pub status: bool,
    /// The texts, if so.
    pub text: Option<TextCompare>,
    /// Whether the elements with a name are.
    pub elements: bool,
    /// Which capture it is compared with.
    pub baseline: Baseline,
}

impl Default for Compare {
    fn default() -> Self {
        Self {
            image: Some(ImageCompare::default()),
            status: false,
            text: None,
            elements: false,
            baseline: Baseline::default(),
        }
    }
}

impl Compare {
    /// Whether the files of two captures are compared, which are deleted before their grabs.
    #[must_use]
    pub const fn needs_files(&self) -> bool {
        self.image.is_some() || self.text.is_some() || self.elements
    }
}

/// What a comparison has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// The part of the image that differs, in millionths of its area. `None`: images were not compared.
    pub difference_ppm: Option<u32>,
    /// What counts as changed.
    pub changes: Vec<Change>,
    /// The lines in which the texts differ.
    pub text_changes: Vec<TextChange>,
    /// The elements that differ.
    pub element_changes: Vec<ElementChange>,
    /// Whether the texts should have been compared, and were not.
    pub is_text_missing: bool,
    /// Whether the elements should have been compared, and were not.
    pub are_elements_missing: bool,
}

impl Compared {
    /// Whether something should have been compared, and was not.
    #[must_use]
    pub const fn is_incomplete(&self) -> bool {
        self.is_text_missing || self.are_elements_missing
    }
}

impl Compare {
    /// Compares a done grab with the baseline. `files` has the results for their texts and elements. `None` if nothing can be said:
    /// the image should have been compared with that of the baseline and was not, or the baseline lacks a file and nothing else has
    /// changed.
    pub fn compare(&self, baseline: &Grab, grab: &Grab, files: &FileResults) -> Option<Compared> {
        let (before, after) = (done(baseline)?, done(grab)?);
        let mut compared = Compared::default();
        if let Some(image) = &self.image {
            let difference = after.difference.as_ref().filter(|found| found.compared_to == baseline.id)?;
            compared.difference_ppm = Some(difference.changed_ppm);
            if difference.changed_ppm > image.threshold_ppm {
                compared.changes.push(Change::Image);
            }
        }
        if self.status && before.http_status != after.http_status {
            compared.changes.push(Change::Status);
        }
        let mut is_without_baseline = false;
        if self.text.is_some() {
            match &files.texts {
                Some(FileResult::Compared(changes)) => compared.text_changes.clone_from(changes),
                Some(FileResult::NoBaseline) => (compared.is_text_missing, is_without_baseline) = (true, true),
                Some(FileResult::Unread) | None => compared.is_text_missing = true,
            }
        }
        if self.elements {
            match &files.elements {
                Some(FileResult::Compared(changes)) => compared.element_changes.clone_from(changes),
                Some(FileResult::NoBaseline) => (compared.are_elements_missing, is_without_baseline) = (true, true),
                Some(FileResult::Unread) | None => compared.are_elements_missing = true,
            }
        }
        let found = [
            (!compared.text_changes.is_empty(), Change::Text),
            (!compared.element_changes.is_empty(), Change::Elements),
        ];
        compared.changes.extend(found.into_iter().filter_map(|(has_changed, change)| has_changed.then_some(change)));
        (!is_without_baseline || !compared.changes.is_empty()).then_some(compared)
    }
}

fn done(grab: &Grab) -> Option<&RenderMetadata> {
    match &grab.state {
        State::Done { metadata, .. } => Some(metadata),
        State::Pending | State::Processing | State::Failed { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::capture::{CaptureRequest, CaptureSpec, Class};
    use crate::credentials::Environment;
    use crate::grabs::Difference;
    use crate::ids::{GrabId, TeamId};
    use crate::timestamp::Timestamp;

    const BEFORE: GrabId = GrabId(Uuid::from_u128(1));

    fn grab(id: GrabId, status: u16, difference: Option<(GrabId, u32)>) -> Grab {
        let request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        let difference =
            difference.map(|(compared_to, changed_ppm)| Difference { compared_to, changed_ppm, regions: Vec::new() });
        Grab {
            id,
            team: TeamId(Uuid::nil()),
            environment: Environment::Live,
            class: Class::Async,
            spec: CaptureSpec::parse(&request).unwrap(),
            created_at: Timestamp::from_ms(1),
            deleted_at: None,
            attempts: 1,
            state: State::Done {
                finished_at: Timestamp::from_ms(2),
                image: None,
                size_bytes: 1,
                execution_ms: 1,
                metadata: RenderMetadata { http_status: Some(status), difference, ..RenderMetadata::default() },
            },
        }
    }

    #[test]
    fn images_differ_above_the_threshold_and_statuses_if_they_are_not_equal() {
        let both = Compare { status: true, ..Compare::default() };
        let status_only = Compare { image: None, ..both.clone() };
        let exact = ImageCompare { threshold_ppm: 0, ..ImageCompare::default() };
        let exact = Compare { image: Some(exact), ..Compare::default() };
        for (compare, ppm, status, changes) in [
            (&Compare::default(), 1000, 404, &[][..]),
            (&Compare::default(), 1001, 200, &[Change::Image]),
            (&both, 1001, 404, &[Change::Image, Change::Status]),
            (&both, 0, 404, &[Change::Status]),
            (&status_only, 500_000, 200, &[]),
            (&status_only, 500_000, 500, &[Change::Status]),
            (&exact, 0, 200, &[]),
            (&exact, 1, 200, &[Change::Image]),
        ] {
            let later = grab(GrabId(Uuid::from_u128(2)), status, Some((BEFORE, ppm)));
            let compared = compare.compare(&grab(BEFORE, 200, None), &later, &FileResults::default()).unwrap();
            assert_eq!(compared.changes, changes, "{compare:?} {ppm} {status}");
            assert_eq!(compared.difference_ppm, compare.image.as_ref().map(|_| ppm));
        }
    }

    #[test]
    fn nothing_is_said_without_a_comparison_with_this_baseline() {
        for difference in [None, Some((GrabId(Uuid::from_u128(9)), 5))] {
            let later = grab(GrabId(Uuid::from_u128(2)), 200, difference);
            assert_eq!(Compare::default().compare(&grab(BEFORE, 200, None), &later, &FileResults::default()), None);
        }
    }

    #[test]
    fn text_that_was_not_compared_is_no_change() {
        let text_only = Compare { image: None, text: Some(TextCompare::default()), ..Compare::default() };
        let with_status = Compare { status: true, ..text_only.clone() };
        let line = TextChange { before: None, after: Some("New".to_owned()) };
        let changed = FileResult::Compared(vec![line.clone()]);
        let compared = |changes: &[Change], text_changes: &[TextChange], is_text_missing| {
            let (changes, text_changes) = (changes.to_vec(), text_changes.to_vec());
            Some(Compared { changes, text_changes, is_text_missing, ..Compared::default() })
        };
        for (compare, status, texts, expected) in [
            (&text_only, 404, Some(changed.clone()), compared(&[Change::Text], std::slice::from_ref(&line), false)),
            (&text_only, 404, Some(FileResult::Compared(Vec::new())), compared(&[], &[], false)),
            (&text_only, 404, Some(FileResult::Unread), compared(&[], &[], true)),
            (&text_only, 404, None, compared(&[], &[], true)),
            (&text_only, 404, Some(FileResult::NoBaseline), None),
            (&with_status, 404, Some(FileResult::NoBaseline), compared(&[Change::Status], &[], true)),
            (&with_status, 404, Some(changed), compared(&[Change::Status, Change::Text], &[line], false)),
        ] {
            let later = grab(GrabId(Uuid::from_u128(2)), status, None);
            let files = FileResults { texts, ..FileResults::default() };
            assert_eq!(compare.compare(&grab(BEFORE, 200, None), &later, &files), expected, "{files:?}");
        }
    }

    #[test]
    fn elements_are_compared_with_the_text_or_alone() {
        let elements = Compare { image: None, elements: true, ..Compare::default() };
        let both = Compare { text: Some(TextCompare::default()), ..elements.clone() };
        let line = TextChange { before: None, after: Some("New".to_owned()) };
        let added = ElementChange::added("button", "Buy");
        let (texts, changed) = (FileResult::Compared(vec![line]), FileResult::Compared(vec![added.clone()]));
        let later = grab(GrabId(Uuid::from_u128(2)), 200, None);
        for (compare, texts, results, changes, is_missing) in [
            (&elements, None, Some(changed.clone()), Some(&[Change::Elements][..]), false),
            (&elements, None, Some(FileResult::Compared(Vec::new())), Some(&[][..]), false),
            (&elements, None, Some(FileResult::Unread), Some(&[][..]), true),
            (&elements, None, Some(FileResult::NoBaseline), None, true),
            (&both, Some(texts.clone()), Some(changed.clone()), Some(&[Change::Text, Change::Elements][..]), false),
            (&both, Some(texts), Some(FileResult::NoBaseline), Some(&[Change::Text][..]), true),
            (&both, Some(FileResult::NoBaseline), Some(changed), Some(&[Change::Elements][..]), false),
        ] {
            let files = FileResults { texts, elements: results };
            let compared = compare.compare(&grab(BEFORE, 200, None), &later, &files);
            assert_eq!(compared.as_ref().map(|found| found.changes.as_slice()), changes, "{files:?}");
            assert!(compared.is_none_or(|found| found.are_elements_missing == is_missing), "{files:?}");
        }
    }
}
