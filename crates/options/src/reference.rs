//! The reference of all options as Markdown: `docs/OPTIONS.md`.

use std::fmt::Write as _;

use crate::{CaptureOption, Group, TABLE};

/// The text of `docs/OPTIONS.md`, which a test compares with this.
pub fn markdown() -> String {
    let mut text = "\
# Capture options

The options of `POST /v1/grabs`, of `CaptureOptions` in gRPC, and of the command line, where `full_page` is `--full-page`, and
`--no-javascript` turns `javascript` off, which is on by default. The MCP tool `create_grab` has all of them.
"
    .to_owned();
    for group in Group::ALL {
        let options: Vec<&CaptureOption> = TABLE.iter().filter(|option| option.group == group).collect();
        if options.is_empty() {
            continue;
        }
        _ = write!(text, "\n## {}\n", group.title());
        for option in options {
            let mut about = option.help.to_owned();
            if !option.description.is_empty() {
                _ = write!(about, " {}", option.description);
            }
            if !option.excludes.is_empty() {
                let others: Vec<String> = option.excludes.iter().map(|other| format!("`{other}`")).collect();
                _ = write!(about, " Not together with {}.", others.join(", "));
            }
            if !option.requires.is_empty() {
                _ = write!(about, " Only with `{}`.", option.requires);
            }
            _ = write!(about, " Example: `{}`.", option.example);
            let CaptureOption { name, kind, default, default_of, .. } = option;
            let default = match (*default, *default_of) {
                ("", _) => String::new(),
                (default, "") => format!(" Default: `{default}`."),
                (default, other) => format!(" Default: `{default}`, or that of `{other}`."),
            };
            _ = write!(text, "\n### `{name}`\n\n*Value: {}.*{default}\n\n{about}\n", kind.allowed());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_is_up_to_date() {
        let stored = include_str!("../../../docs/OPTIONS.md");
        assert_eq!(stored, markdown(), "run `cargo run -p grabd-options --example reference > docs/OPTIONS.md`");
    }
}
