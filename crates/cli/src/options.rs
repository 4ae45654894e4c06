//! The capture options as command line flags.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use grabd_options::{CaptureOption, Kind, TABLE, Value};

/// Options that are set in another way: URLs are arguments, the format depends on the name of the file, HTML is read from
/// a file, and `--base-url` is the address of the service.
const SPECIAL: [&str; 4] = ["url", "format", "html", "base_url"];

/// The options that were set, by their names in the API.
#[derive(Clone, Debug, Default)]
pub(crate) struct OptionArgs(pub(crate) Vec<(&'static str, Value)>);

impl Args for OptionArgs {
    fn augment_args(command: Command) -> Command {
        options().fold(command, |command, option| command.arg(flag(option)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for OptionArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let value = |option: &CaptureOption| match option.kind {
            Kind::Flag => matches.get_flag(option.name).then_some(Value::Flag(!option.is_on_by_default())),
            Kind::Selectors { .. } => {
                let texts: Vec<String> = matches.get_many::<String>(option.name)?.cloned().collect();
                Some(Value::Texts(texts))
            }
            // Each is checked by itself before.
            kind @ (Kind::Words(_)
            | Kind::Patterns { .. }
            | Kind::Objects { .. }
            | Kind::Sizes { .. }
            | Kind::Choices { .. }
            | Kind::Headers { .. }
            | Kind::Labels { .. }) => {
                let texts: Vec<&str> = matches.get_many::<String>(option.name)?.map(String::as_str).collect();
                kind.parse(&texts.join("\n"))
            }
            Kind::Integer { .. }
            | Kind::Number { .. }
            | Kind::Word(_)
            | Kind::Url
            | Kind::Selector
            | Kind::Text { .. }
            | Kind::TimeZone
            | Kind::Locale
            | Kind::Chars { .. }
            | Kind::Object { .. }
            | Kind::Statuses { .. }
            | Kind::RequestFailure
            | Kind::PageRanges
            | Kind::GrabId
            | Kind::ProxyId
            | Kind::Rectangle => matches.get_one::<Value>(option.name).cloned(),
        };
        Ok(Self(options().filter_map(|option| Some((option.name, value(option)?))).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn options() -> impl Iterator<Item = &'static CaptureOption> {
    TABLE.iter().filter(|option| !SPECIAL.contains(&option.name))
}

fn flag(option: &'static CaptureOption) -> Arg {
    let kind = option.kind;
    let no = if option.is_on_by_default() { "no-" } else { "" };
    let arg = Arg::new(option.name).long(format!("{no}{}", option.name.replace('_', "-"))).help(help(option));
    // Bounds are checked by the service, whose version may be another one.
    let parse = move |text: &str| kind.parse(text).ok_or_else(|| format!("must be {}", kind.allowed()));
    let check = move |text: &str| parse(text).map(|_| text.to_owned());
    let several = arg.clone().action(ArgAction::Append).value_parser(check);
    let value_name = match kind {
        Kind::Flag => return arg.action(ArgAction::SetTrue),
        Kind::Selectors { .. } => return arg.action(ArgAction::Append).value_name("CSS"),
        Kind::Integer { .. } | Kind::Number { .. } => "N",
        Kind::Word(_) => "WORD",
        Kind::Url => "URL",
        Kind::Selector => "CSS",
        Kind::Text { .. } => "TEXT",
        Kind::TimeZone => "ZONE",
        Kind::Locale => "TAG",
        Kind::Chars { .. } | Kind::PageRanges => "TEXT",
        Kind::Object { members, .. } if members.iter().all(|member| !member.is_required) => "NAME=VALUE; FLAG",
        Kind::Object { members, separator } => {
            let names = members.iter().map(|member| member.name.to_ascii_uppercase()).collect::<Vec<_>>();
            return arg.value_name(names.join(&separator.to_string())).allow_hyphen_values(true).value_parser(parse);
        }
        Kind::Words(_) => return several.value_name("WORDS"),
        Kind::Patterns { .. } => return several.value_name("PATTERN"),
        Kind::Objects { .. } if kind.is_of_pairs() => return several.value_name("NAME=VALUE"),
        Kind::Objects { members, .. } => {
            let of_urls = members.first().is_some_and(|member| member.name == "url");
            return several.value_name(if of_urls { "PATTERN" } else { "CSS" });
        }
        Kind::Sizes { .. } => return several.value_name("WIDTHxHEIGHT"),
        Kind::Choices { .. } => {
            return several.value_name("JSON").visible_alias(option.name.trim_end_matches('s'));
        }
        Kind::Headers { .. } | Kind::Labels { .. } => return several.value_name("NAME: VALUE"),
        Kind::Statuses { .. } => "STATUS,…",
        Kind::RequestFailure => "STATUS",
        Kind::Rectangle => "X,Y,WIDTH,HEIGHT",
        Kind::GrabId | Kind::ProxyId => "ID",
    };
    arg.value_name(value_name).allow_hyphen_values(true).value_parser(parse)
}

fn help(option: &CaptureOption) -> String {
    let about = option.help.trim_end_matches('.');
    let about = if option.is_on_by_default() { format!("Off: {about}") } else { about.to_owned() };
    let bounds = match option.kind {
        Kind::Integer { min, max, .. } => Some(format!("{min} to {max}")),
        Kind::Number { min, max } => Some(format!("{min} to {max}")),
        Kind::Word(words) => Some(words.join(", ")),
        Kind::Words(words) => Some(words.join(", ")),
        Kind::Selectors { .. }
        | Kind::Patterns { .. }
        | Kind::Choices { .. }
        | Kind::Headers { .. }
        | Kind::Labels { .. } => Some("can be repeated".to_owned()),
        Kind::Objects { .. } if option.kind.is_of_pairs() => {
            Some("can be repeated; attributes follow, as in \"a=b; path=/; secure\"".to_owned())
        }
        Kind::Objects { .. } => {
            let example = option.example_text();
            Some(format!(
                "can be repeated; attributes follow, as in \"{}\"",
                example.lines().next().unwrap_or_default()
            ))
        }
        Kind::Sizes { .. } => Some("separated by commas".to_owned()),
        Kind::Flag
        | Kind::Url
        | Kind::Selector
        | Kind::Text { .. }
        | Kind::TimeZone
        | Kind::Locale
        | Kind::Chars { .. }
        | Kind::Object { .. }
        | Kind::Statuses { .. }
        | Kind::RequestFailure
        | Kind::PageRanges
        | Kind::GrabId
        | Kind::ProxyId
        | Kind::Rectangle => None,
    };
    let has_default = !option.default.is_empty() && option.kind != Kind::Flag;
    let default = has_default.then(|| format!("default: {}", option.default.trim_matches('"')));
    let notes: Vec<String> = bounds.into_iter().chain(default).collect();
    if notes.is_empty() { about } else { format!("{about} [{}]", notes.join(", ")) }
}

#[cfg(test)]
mod tests {
    use grabd_options::Rectangle;

    use super::*;

    fn parse(args: &[&str]) -> Result<Vec<(&'static str, Value)>, clap::Error> {
        let command = OptionArgs::augment_args(Command::new("grab"));
        let matches = command.try_get_matches_from(["grab"].iter().chain(args))?;
        OptionArgs::from_arg_matches(&matches).map(|OptionArgs(options)| options)
    }

    #[test]
    fn flags_set_options_by_their_kind() {
        let texts = |texts: [&str; 2]| Value::Texts(texts.map(str::to_owned).to_vec());
        assert_eq!(parse(&[]).unwrap(), []);
        assert_eq!(parse(&["--freeze"]).unwrap(), [("freeze", Value::Flag(true))]);
        assert_eq!(parse(&["--no-javascript"]).unwrap(), [("javascript", Value::Flag(false))]);
        assert_eq!(parse(&["--fail-on-status", "4xx,503"]).unwrap(), [("fail_on_status", texts(["4xx", "503"]))]);
        assert_eq!(parse(&["--click", "a", "--click", "b"]).unwrap(), [("click", texts(["a", "b"]))]);
        let clip = Value::Rectangle(Rectangle { x: 0, y: 10, width: 20, height: 30 });
        assert_eq!(parse(&["--clip", "0,10,20,30"]).unwrap(), [("clip", clip)]);
        assert!(parse(&["--clip", "0,10"]).is_err() && parse(&["--javascript"]).is_err());
        let steps = parse(&["--step", r##"{"click":"#x"}"##, "--step", r#"{"press":"Enter"}"#]).unwrap();
        let kind = grabd_options::find("steps").unwrap().kind;
        let expected = kind.parse(r##"[{"click": "#x"}, {"press": "Enter"}]"##).unwrap();
        assert_eq!(steps, [("steps", expected)]);
        assert!(parse(&["--step", "#x"]).is_err());
        let rules = parse(&["--fail-on-request", "*/api/*; status=5xx", "--fail-on-request", "*.js"]).unwrap();
        let kind = grabd_options::find("fail_on_request").unwrap().kind;
        assert_eq!(rules, [("fail_on_request", kind.parse("*/api/*; status=5xx\n*.js").unwrap())]);
    }
}
