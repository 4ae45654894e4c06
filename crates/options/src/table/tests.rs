use super::*;

#[test]
fn every_row_is_complete_and_its_default_and_example_are_valid() {
    for option in TABLE {
        for text in [option.label, option.help, option.example, option.since] {
            assert!(!text.is_empty(), "{option:?}");
        }
        for text in [option.default, option.example].into_iter().filter(|text| !text.is_empty()) {
            let value: Value = serde_json::from_str(text).unwrap();
            let mut request = CaptureRequest::default();
            assert!(request.set(option.name, value), "{}: {text}", option.name);
            assert_eq!(option.check(&request.get(option.name).unwrap()), Ok(()), "{text}");
        }
        assert!(option.default_of.is_empty() || find(option.default_of).is_some(), "{}", option.name);
        assert!(option.requires.is_empty() || find(option.requires).is_some(), "{}", option.name);
        for other in option.excludes {
            let other = find(other).unwrap_or_else(|| panic!("{} excludes {other}", option.name));
            assert_ne!(other.name, option.name);
        }
    }
}

#[test]
fn lines_for_agents_are_short_sentences() {
    for option in TABLE.iter().filter(|option| !option.brief.is_empty()) {
        assert!(option.brief.ends_with('.') && option.brief.len() <= 120, "{}: {}", option.name, option.brief);
    }
}

#[test]
fn secret_options_are_not_in_debug_output() {
    for option in TABLE {
        let mut request = CaptureRequest::default();
        assert!(request.set(option.name, serde_json::from_str(option.example).unwrap()), "{}", option.name);
        let is_hidden = format!("{request:?}").contains(&format!("{}: Some(Secret(…))", option.name));
        assert_eq!(is_hidden, option.is_secret, "{}", option.name);
    }
}

#[test]
fn names_are_unique_and_in_snake_case() {
    for (at, option) in TABLE.iter().enumerate() {
        assert!(TABLE[..at].iter().all(|other| other.name != option.name), "{}", option.name);
        assert!(option.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{}", option.name);
    }
}

#[test]
fn options_of_another_type_are_not_set() {
    let mut request = CaptureRequest::default();
    assert!(!request.set("width", Value::Text("wide".to_owned())));
    assert!(!request.set("widht", Value::Integer(800)));
    assert_eq!(request, CaptureRequest::default());
}
