//! What can be read of a grab.

/// What a caller asks to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readable {
    Markdown,
    Text,
    Elements,
    Report,
    /// What changed since an earlier grab.
    Difference,
    /// The copy of the image with numbered elements. It is no text.
    Marks,
}

impl Readable {
    /// All, in the order of their documentation.
    pub(crate) const ALL: [Self; 6] =
        [Self::Markdown, Self::Text, Self::Elements, Self::Report, Self::Difference, Self::Marks];

    /// The name, which is also that of the file.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Text => "text",
            Self::Elements => "elements",
            Self::Report => "report",
            Self::Difference => "difference",
            Self::Marks => "marks",
        }
    }

    /// The one with a name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether it is read as text.
    pub(crate) const fn is_text(self) -> bool {
        match self {
            Self::Markdown | Self::Text | Self::Elements | Self::Report | Self::Difference => true,
            Self::Marks => false,
        }
    }

    /// The files that a capture must make for it, as `also` names them.
    pub(crate) const fn needed_files(self) -> &'static [&'static str] {
        match self {
            Self::Markdown => &["markdown"],
            Self::Text => &["text"],
            Self::Elements => &["elements"],
            Self::Report => &["report"],
            // Those that `changes` compares.
            Self::Difference => &["elements", "text"],
            Self::Marks => &["marks"],
        }
    }
}

#[cfg(test)]
mod tests {
    use grabd_options::{Kind, find};

    use super::*;

    #[test]
    fn needed_files_are_those_that_can_be_asked_for() {
        let Kind::Words(also) = find("also").unwrap().kind else { panic!("`also` is no list of words") };
        for kind in Readable::ALL {
            assert_eq!(Readable::from_name(kind.name()), Some(kind));
            assert!(kind.needed_files().iter().all(|file| also.contains(file)), "{kind:?}");
        }
        assert_eq!(Readable::from_name("pdf"), None);
    }
}
