//! What can be read of a grab.

use grabd_options::{Kind, find};

/// What a caller asks to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readable {
    Markdown,
    Text,
    Elements,
    /// The accessibility tree.
    Accessibility,
    Report,
    /// What changed since an earlier grab.
    Difference,
    /// The copy of the image with numbered elements. It is no text.
    Marks,
}

impl Readable {
    /// All, in the order of their documentation.
    const ALL: [Self; 7] =
        [Self::Markdown, Self::Text, Self::Elements, Self::Accessibility, Self::Report, Self::Difference, Self::Marks];

    /// Those whose files captures make.
    pub(crate) fn offered() -> impl Iterator<Item = Self> {
        let also: &'static [&'static str] = match find("also").map(|option| option.kind) {
            Some(Kind::Words(words)) => words,
            Some(_) | None => &[],
        };
        Self::ALL.into_iter().filter(move |kind| kind.needed_files().iter().all(|file| also.contains(file)))
    }

    /// The name, which is also that of the file.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Text => "text",
            Self::Elements => "elements",
            Self::Accessibility => "accessibility",
            Self::Report => "report",
            Self::Difference => "difference",
            Self::Marks => "marks",
        }
    }

    /// The one with a name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::offered().find(|kind| kind.name() == name)
    }

    /// Whether it is read as text.
    pub(crate) const fn is_text(self) -> bool {
        match self {
            Self::Markdown | Self::Text | Self::Elements | Self::Accessibility | Self::Report | Self::Difference => {
                true
            }
            Self::Marks => false,
        }
    }

    /// The files that a capture must make for it, as `also` names them.
    pub(crate) const fn needed_files(self) -> &'static [&'static str] {
        match self {
            Self::Markdown => &["markdown"],
            Self::Text => &["text"],
            Self::Elements => &["elements"],
            Self::Accessibility => &["accessibility"],
            Self::Report => &["report"],
            // Those that `changes` compares.
            Self::Difference => &["elements", "text"],
            Self::Marks => &["marks"],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_captures_make_is_offered_under_its_name() {
        let offered: Vec<Readable> = Readable::offered().collect();
        let always = Readable::ALL.into_iter().filter(|kind| *kind != Readable::Accessibility);
        for kind in always {
            assert!(offered.contains(&kind), "{kind:?}");
            assert_eq!(Readable::from_name(kind.name()), Some(kind));
        }
        assert_eq!(Readable::from_name("pdf"), None);
    }
}
