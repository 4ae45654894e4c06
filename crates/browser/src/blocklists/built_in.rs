//! The lists that come with grabd: chat widgets, and share bars.

use std::sync::LazyLock;

use super::list::List;

static CHATS: LazyLock<Option<List>> = LazyLock::new(|| List::parse(include_str!("lists/chats.txt").to_owned()).ok());
static SOCIAL: LazyLock<Option<List>> = LazyLock::new(|| List::parse(include_str!("lists/social.txt").to_owned()).ok());

/// The list of chat widgets.
pub(super) fn chats() -> Option<&'static List> {
    CHATS.as_ref()
}

/// The list of share bars and buttons of social networks.
pub(super) fn social() -> Option<&'static List> {
    SOCIAL.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widgets_of_well_known_vendors_are_blocked_and_their_other_pages_are_not() {
        let blocks =
            |list: Option<&List>, host: &str| list.unwrap().blocks_host(host, "https://page.example/", "page.example");
        for host in [
            "widget.intercom.io",
            "js.driftt.com",
            "client.crisp.chat",
            "embed.tawk.to",
            "ekr.zdassets.com",
            "js.usemessages.com",
            "cdn.livechatinc.com",
            "code.tidio.co",
        ] {
            assert!(blocks(chats(), host) && !blocks(social(), host), "{host}");
        }
        for host in ["s7.addthis.com", "platform-api.sharethis.com", "static.addtoany.com"] {
            assert!(blocks(social(), host) && !blocks(chats(), host), "{host}");
        }
        for host in ["static.zdassets.com", "js.hs-scripts.com", "www.facebook.com", "platform.twitter.com"] {
            assert!(!blocks(social(), host) && !blocks(chats(), host), "{host}");
        }
        let like = "https://www.facebook.com/plugins/like.php?href=x";
        assert!(social().unwrap().blocks_url(like, "sub_frame", "https://page.example/"));
    }
}
