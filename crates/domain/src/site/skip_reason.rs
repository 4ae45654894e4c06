//! Why a page is not captured.

/// Why a page is not captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SkipReason {
    /// The robots.txt of its host does not allow it, or could not be read.
    Robots,
    /// It is of another site.
    OtherSite,
    /// The patterns of the job leave it out.
    Excluded,
    /// Its address is that of a file that is no page.
    NotHtml,
    /// The job has as many pages as it may have.
    MaxPages,
    /// Its host has a private address.
    PrivateAddress,
    /// The job was canceled before.
    Canceled,
    /// The team had no credits.
    OutOfCredits,
}

impl SkipReason {
    /// All reasons.
    pub const ALL: [Self; 8] = [
        Self::Robots,
        Self::OtherSite,
        Self::Excluded,
        Self::NotHtml,
        Self::MaxPages,
        Self::PrivateAddress,
        Self::Canceled,
        Self::OutOfCredits,
    ];

    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Robots => "robots",
            Self::OtherSite => "other_site",
            Self::Excluded => "excluded",
            Self::NotHtml => "not_html",
            Self::MaxPages => "max_pages",
            Self::PrivateAddress => "private_address",
            Self::Canceled => "canceled",
            Self::OutOfCredits => "out_of_credits",
        }
    }
}
