//! The page of all settings, made from the file that declares and describes them.

use std::collections::HashMap;

use super::markdown::anchor;

/// From the directory of the file to the root of the repository, for links.
const ROOT: &str = "../../../../";
/// What a word of a comment may have around it.
const PUNCTUATION: &[char] = &['(', ')', '.', ',', ':', ';'];

/// A setting: its key with the section, and its line in the file.
struct Setting<'a> {
    key: String,
    line: &'a str,
}

/// Settings that share a comment.
struct Group<'a> {
    text: String,
    settings: Vec<Setting<'a>>,
}

/// A section of the file.
#[derive(Default)]
struct Section<'a> {
    /// Empty for keys without a section.
    name: &'a str,
    text: String,
    groups: Vec<Group<'a>>,
}

/// The Markdown of the page for a file of settings: each comment with its keys, their defaults and variables.
///
/// A comment belongs to the keys below it, up to the next comment. Before the line of a section it belongs to the section, and
/// before an empty line to the file.
pub(super) fn markdown(file: &str) -> String {
    let (text, sections) = parse(file);
    let groups = || sections.iter().flat_map(|section| &section.groups);
    let anchors: HashMap<&str, String> = groups()
        .flat_map(|group| group.settings.iter().map(|setting| (setting.key.as_str(), anchor(&heading(group)))))
        .collect();
    let mut page = format!("# Settings\n\n{}\n", linked(&text, &anchors));
    for Section { name, text, groups } in &sections {
        let title = if name.is_empty() { "Without a section" } else { name };
        page.push_str(&format!("\n## {title}\n"));
        if !text.is_empty() {
            page.push_str(&format!("\n{}\n", linked(text, &anchors)));
        }
        for group in groups {
            page.push_str(&format!("\n### {}\n\n{}\n\n", heading(group), linked(&group.text, &anchors)));
            for Setting { key, line } in &group.settings {
                page.push_str(&format!("- `{line}`, in the environment `{}`\n", variable(key)));
            }
        }
    }
    page
}

/// The comment of the file, and its sections.
fn parse(file: &str) -> (String, Vec<Section<'_>>) {
    let mut text = String::new();
    let mut sections = vec![Section::default()];
    let mut comment = String::new();
    for line in file.lines() {
        let Some(section) = sections.last_mut() else { break };
        if let Some(part) = line.strip_prefix('#') {
            comment.push_str(part);
        } else if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            sections.push(Section { name, text: std::mem::take(&mut comment), groups: Vec::new() });
        } else if let Some((name, _)) = line.split_once(" = ") {
            let key = if section.name.is_empty() { name.to_owned() } else { format!("{}.{name}", section.name) };
            let setting = Setting { key, line };
            match section.groups.last_mut() {
                Some(group) if comment.is_empty() => group.settings.push(setting),
                _ => section.groups.push(Group { text: std::mem::take(&mut comment), settings: vec![setting] }),
            }
        } else {
            text.push_str(&std::mem::take(&mut comment));
        }
    }
    (text, sections)
}

/// The heading of a group: its keys.
fn heading(group: &Group<'_>) -> String {
    let keys: Vec<String> = group.settings.iter().map(|setting| format!("`{}`", setting.key)).collect();
    keys.join(", ")
}

/// The variable of the environment that sets a key.
fn variable(key: &str) -> String {
    format!("GRABD_{}", key.replace('.', "__").to_uppercase())
}

/// A comment with links to the settings and files that it names.
fn linked(comment: &str, anchors: &HashMap<&str, String>) -> String {
    let link = |word: &str| {
        let name = word.trim_matches(PUNCTUATION);
        let link = match (anchors.get(name), name.rsplit_once('/')) {
            (Some(anchor), _) if name.contains('.') => format!("[`{name}`](#{anchor})"),
            (_, Some((_, file))) if name.starts_with("docs/") => format!("[{file}]({ROOT}{name})"),
            _ => return word.to_owned(),
        };
        word.replace(name, &link)
    };
    comment.split_whitespace().map(link).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_with_one_comment_share_a_heading_and_comments_have_links() {
        let file = "# All settings.\n# With defaults.\n\n# The role (docs/FLEET.md).\nrole = \"all\"\n\n# Of teams.\n[limits]\n\
                    # At most limits.b, and\n# role.\na = 1\nb = []\n# Else.\nc = \"\"\n";
        let page = "# Settings\n\nAll settings. With defaults.\n\n## Without a section\n\n### `role`\n\n\
                    The role ([FLEET.md](../../../../docs/FLEET.md)).\n\n- `role = \"all\"`, in the environment `GRABD_ROLE`\n\n\
                    ## limits\n\nOf teams.\n\n### `limits.a`, `limits.b`\n\n\
                    At most [`limits.b`](#limitsa-limitsb), and role.\n\n\
                    - `a = 1`, in the environment `GRABD_LIMITS__A`\n- `b = []`, in the environment `GRABD_LIMITS__B`\n\n\
                    ### `limits.c`\n\nElse.\n\n- `c = \"\"`, in the environment `GRABD_LIMITS__C`\n";
        assert_eq!(markdown(file), page);
    }
}
