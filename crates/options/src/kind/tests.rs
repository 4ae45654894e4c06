use super::*;

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

#[test]
fn bounds_are_inclusive() {
    let integer = Kind::Integer { min: 1, max: 3, unit: "" };
    let accepted = [0, 1, 3, 4].map(|value| integer.accepts(&Value::Integer(value)));
    assert_eq!(accepted, [false, true, true, false]);
    let number = Kind::Number { min: 1.0, max: 3.0 };
    let accepted = [0.99, 1.0, 3.0, 3.01, f64::NAN].map(|value| number.accepts(&Value::Number(value)));
    assert_eq!(accepted, [false, true, true, false, false]);
}

#[test]
fn texts_are_limited_in_characters_and_not_blank() {
    let kind = Kind::Text { max: 3, is_multiline: false };
    let accepted = ["", " ", "a\0", "äöü", "äöüß"].map(|value| kind.accepts(&text(value)));
    assert_eq!(accepted, [false, false, false, true, false]);
    let lines = ["a\nb", "a\r\nX: y"].map(text);
    assert!(lines.iter().all(|lines| !Kind::Text { max: 9, is_multiline: false }.accepts(lines)));
    assert!(lines.iter().all(|lines| Kind::Text { max: 9, is_multiline: true }.accepts(lines)));
    let list = Kind::Selectors { max: 2 };
    let texts = |texts: &[&str]| Value::Texts(texts.iter().map(|text| (*text).to_owned()).collect());
    let accepted = [&[][..], &["a", "b"], &["a", ""], &["a", "b", "c"]].map(|list_| list.accepts(&texts(list_)));
    assert_eq!(accepted, [true, true, false, false]);
}

#[test]
fn language_tags_have_a_language_and_short_parts() {
    let accepted = ["de", "de-AT", "zh-Hant-TW", "d", "de_AT", "de-", "deutsch", ""]
        .map(|value| Kind::Locale.accepts(&text(value)));
    assert_eq!(accepted, [true, true, true, false, false, false, false, false]);
}

#[test]
fn statuses_are_failures_or_classes_of_them() {
    let kind = Kind::Statuses { max: 2 };
    let texts = |texts: &[&str]| Value::Texts(texts.iter().map(|text| (*text).to_owned()).collect());
    let accepted =
        [&["4xx", "599"][..], &[], &["400"], &["399"], &["600"], &["3xx"], &["+404"], &["4xx", "5xx", "404"]]
            .map(|statuses| kind.accepts(&texts(statuses)));
    assert_eq!(accepted, [true, true, true, false, false, false, false, false]);
    assert_eq!(kind.parse("4xx, 503\n404"), Some(texts(&["4xx", "503", "404"])));
}

#[test]
fn requests_fail_with_a_status_or_without_an_answer() {
    let accepted = ["5xx", "404", "failed", "", "3xx", "200", "600", "Failed", "4xx, 5xx"]
        .map(|value| Kind::RequestFailure.accepts(&text(value)));
    assert_eq!(accepted, [true, true, true, false, false, false, false, false, false]);
    assert!(!Kind::RequestFailure.accepts(&Value::Integer(404)), "interfaces convert it to a text");
    assert_eq!(Kind::RequestFailure.parse(" 5xx "), Some(text("5xx")));
}

#[test]
fn page_ranges_ascend_and_have_no_other_characters() {
    let accepted = ["1", "1-3, 5", "7-7,9999", "", "0", "3-1", "1-", "-2", "+1", "1;2", "10000", "1-2-3"]
        .map(|value| Kind::PageRanges.accepts(&text(value)));
    let expected = [true, true, true].into_iter().chain([false; 9]);
    assert!(accepted.into_iter().eq(expected), "{accepted:?}");
    assert!(!Kind::PageRanges.accepts(&text(&"1,".repeat(60))));
}

#[test]
fn rectangles_are_bounded_and_have_four_numbers() {
    let accepted = ["0,0,1,1", "100000, 100000, 16384, 16384", "-1,0,1,1", "0,100001,1,1", "0,0,0,1", "0,0,1,16385"]
        .map(|text| Kind::Rectangle.accepts(&Kind::Rectangle.parse(text).unwrap()));
    assert_eq!(accepted, [true, true, false, false, false, false]);
    for text in ["", "1,2,3", "1,2,3,4,5", "1,2,3,x"] {
        assert_eq!(Kind::Rectangle.parse(text), None, "{text}");
    }
    let rectangle = Rectangle { x: 1, y: 2, width: 3, height: 4 };
    assert_eq!(Rectangle::parse(&rectangle.to_text()), Some(rectangle));
    let json = Value::Rectangle(rectangle).to_string();
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), Value::Rectangle(rectangle));
}

#[test]
fn words_are_compared_exactly() {
    let kind = Kind::Word(&["png", "jpeg"]);
    assert_eq!(["png", "PNG", ""].map(|value| kind.accepts(&text(value))), [true, false, false]);
    assert_eq!(kind.allowed(), "one of \"png\", \"jpeg\"");
}

#[test]
fn texts_of_forms_are_read_by_kind() {
    let integer = Kind::Integer { min: 0, max: 1, unit: "" };
    assert_eq!((integer.parse(" 7 "), integer.parse("7e2")), (Some(Value::Integer(7)), None));
    let number = Kind::Number { min: 0.0, max: 1.0 };
    assert_eq!((number.parse("1.5"), number.parse("inf")), (Some(Value::Number(1.5)), None));
    assert_eq!((Kind::Flag.parse("1"), Kind::Flag.parse("yes")), (Some(Value::Flag(true)), None));
    let lines = Kind::Selectors { max: 9 }.parse("a\r\n\n b ");
    assert_eq!(lines, Some(Value::Texts(vec!["a".to_owned(), "b".to_owned()])));
}

fn object(members: &[(&str, Value)]) -> Object {
    members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

#[test]
fn words_are_known_and_named_once() {
    let kind = Kind::Words(&["image", "font"]);
    let accepts = |words: &[&str]| kind.accepts(&Value::Texts(words.iter().map(|&word| word.to_owned()).collect()));
    let accepted = [&[][..], &["font", "image"], &["font", "font"], &["video"]].map(accepts);
    assert_eq!(accepted, [true, true, false, false]);
}

#[test]
fn objects_have_their_required_members_and_no_others() {
    const MEMBERS: &[Member] = &[
        Member { name: "a", kind: Kind::Number { min: 0.0, max: 1.5 }, is_required: true, help: "" },
        Member { name: "b", kind: Kind::Flag, is_required: false, help: "" },
    ];
    let kind = Kind::Object { members: MEMBERS, separator: ',' };
    for (members, is_accepted) in [
        (object(&[("a", Value::Integer(1))]), true),
        (object(&[("a", Value::Number(1.5)), ("b", Value::Flag(false))]), true),
        (object(&[("a", Value::Integer(2))]), false),
        (object(&[("b", Value::Flag(true))]), false),
        (object(&[("a", Value::Integer(1)), ("c", Value::Flag(true))]), false),
    ] {
        assert_eq!(kind.accepts(&Value::Object(members.clone())), is_accepted, "{members:?}");
    }
    assert_eq!(kind.allowed(), "an object with `a` (a number from 0 to 1.5), and optionally `b` (true or false)");
}

#[test]
fn headers_have_allowed_names_and_printable_values() {
    let kind = Kind::Headers { max: 2, max_chars: 4 };
    let accepts = |headers: &[(&str, &str)]| {
        let headers: Vec<(&str, Value)> = headers.iter().map(|(name, value)| (*name, text(value))).collect();
        kind.accepts(&Value::Object(object(&headers)))
    };
    assert!(accepts(&[("Accept", ""), ("x-b", "abcd")]));
    for refused in REFUSED_HEADERS.iter().chain(&["Cookie", "Proxy-Authorization", "sec-ch-ua", "", "a b", "a:", "ä"])
    {
        assert!(!accepts(&[(refused, "a")]), "{refused}");
    }
    for value in ["abcde", "a\r\nb", "ä", "\0"] {
        assert!(!accepts(&[("a", value)]), "{value:?}");
    }
    assert!(!accepts(&[("a", ""), ("b", ""), ("c", "")]));
    assert!(!accepts(&[("a", ""), ("A", "")]));
}

#[test]
fn ids_of_grabs_are_uuids_with_hyphens() {
    let id = "01993e1c-7b1a-7000-8000-0123456789ab";
    let accepted =
        [id, &id.to_uppercase(), &id.replace('-', ""), &id[1..], &format!("{id}0"), &id.replace('c', "g"), ""]
            .map(|value| Kind::GrabId.accepts(&text(value)));
    assert_eq!(accepted, [true, true, false, false, false, false, false]);
    assert!(!Kind::GrabId.accepts(&text("01993e1c7-b1a-7000-8000-0123456789ab")));
}
