//! The header `X-Robots-Tag`, by which a site can ask that no image of a page is made.
//!
//! The syntax is that of Google's "Robots meta tag, data-nosnippet, and X-Robots-Tag specifications": directives separated by
//! commas, of which those after `name:` are for the robot with that name.

/// The name of this service in the header.
const NAME: &str = "grabd";
/// Directives of all robots that ask for no copy of the page and for no use of its images. `noindex`, `none` and `nofollow`
/// are about search results, and are common on pages whose own team captures them.
const FOR_ALL: [&str; 2] = ["noarchive", "noimageindex"];
/// The same when they are for this service by name.
const FOR_US: [&str; 4] = ["none", "noindex", "noarchive", "noimageindex"];
/// Directives with a value after a colon, which are no names of robots.
const WITH_VALUE: [&str; 4] = ["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"];

/// Whether a value of the header asks that no image is made. Several headers are separated by line feeds.
pub(super) fn opts_out(value: &str) -> bool {
    value.lines().any(line_opts_out)
}

fn line_opts_out(line: &str) -> bool {
    let mut robot: Option<&str> = None;
    for part in line.split(',').map(str::trim) {
        let directive = match part.split_once(':') {
            // The time in the date of `unavailable_after` has colons, too.
            Some((name, _)) if is_one_of(name.trim(), &WITH_VALUE) || !is_word(name.trim()) => continue,
            Some((name, directive)) => {
                robot = Some(name.trim());
                directive.trim()
            }
            None => part,
        };
        let opts_out = match robot {
            None => is_one_of(directive, &FOR_ALL),
            Some(name) => name.eq_ignore_ascii_case(NAME) && is_one_of(directive, &FOR_US),
        };
        if opts_out {
            return true;
        }
    }
    false
}

fn is_word(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|known| known.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_against_copies_and_those_for_this_service_opt_out() {
        for (value, expected) in [
            ("noimageindex", true),
            ("noindex, NoArchive", true),
            ("max-snippet: 20, noimageindex", true),
            ("unavailable_after: Sat, 01 Jan 2028 15:00:00 GMT, noarchive", true),
            ("grabd: none", true),
            ("Grabd:noindex", true),
            ("googlebot: nofollow, grabd: nofollow, noindex", true),
            ("googlebot: none\ngrabd: none", true),
            ("googlebot: none\nnoarchive", true),
            ("", false),
            ("none", false),
            ("noindex, nofollow", false),
            ("all", false),
            ("max-image-preview: none", false),
            ("googlebot: noimageindex, noarchive", false),
            ("grabd: all", false),
            ("grabd: none of it", false),
            ("grabdbot: none", false),
        ] {
            assert_eq!(opts_out(value), expected, "{value}");
        }
    }
}
