//! Which options signed links cannot have. A link is a URL that is made to be published, and its answer is an image.

use crate::{CaptureOption, LinkBar, find};

impl CaptureOption {
    /// Why signed links cannot have this option. None if they can.
    pub fn refused_in_links(&self) -> Option<LinkBar> {
        let belongs_to_secret = find(self.requires).is_some_and(|other| other.is_secret);
        if self.is_secret || belongs_to_secret { Some(LinkBar::Published) } else { self.link_bar }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TABLE;

    #[test]
    fn options_that_links_cannot_have_are_these() {
        let names = |bar: LinkBar| -> Vec<&str> {
            TABLE.iter().filter(|option| option.refused_in_links() == Some(bar)).map(|option| option.name).collect()
        };
        let published = [
            "headers",
            "cookies",
            "basic_auth",
            "script",
            "html",
            "base_url",
            "upload_url",
            "steps",
            "wait_for_expression",
            "proxy",
        ];
        assert_eq!(names(LinkBar::Published), published);
        assert_eq!(names(LinkBar::OnlyImage), ["compare_to", "evidence"]);
    }
}
