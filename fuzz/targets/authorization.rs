#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    grabd_proto::properties::authorization(data);
    grabd_domain::properties::api_key(data);
});
