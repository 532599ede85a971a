//! Events and their encoding in sixteen bytes: total and one-to-one.
#![cfg(not(loom))]

extern crate alloc;

use alloc::collections::BTreeSet;

use clockjack_observe::event::{
    ActorId, Directive, Encoded, Event, Kind, Record, SchedulerWarning, ShardId, TaskId, WorkerId,
};
use proptest::prelude::*;

/// Packs field values one after the other, as the documentation specifies.
fn compose(kind: Kind, raw: &[u64]) -> Encoded {
    let mut word = u128::from(kind.code());
    let mut at = 8;
    for (field, raw) in kind.fields().iter().zip(raw) {
        word |= u128::from(*raw) << at;
        at += field.bits;
    }
    Encoded::from_bytes(word.to_le_bytes())
}

fn kind_and_numbers() -> impl Strategy<Value = (Kind, Vec<u64>)> {
    (0..Kind::ALL.len(), any::<[u64; 8]>(), any::<u8>()).prop_map(|(kind, words, edges)| {
        let kind = Kind::ALL[kind];
        let numbers = kind.fields().iter().zip(words).enumerate().map(|(i, (field, word))| {
            match (edges >> i) & 1 {
                0 if field.max == u64::MAX => word,
                0 => word % (field.max + 1),
                _ => field.max,
            }
        });
        (kind, numbers.collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn every_event_decodes_from_its_own_bytes((kind, numbers) in kind_and_numbers()) {
        let encoded = compose(kind, &numbers);
        let event = Event::decode(encoded).expect("every number is a value of its field");
        prop_assert_eq!(event.kind(), kind);
        prop_assert_eq!(event.encode(), encoded);
        prop_assert_eq!(Event::decode(event.encode()), Ok(event));
    }

    #[test]
    fn any_sixteen_bytes_decode_to_what_encodes_them_or_to_an_error(
        code in any::<u8>(),
        rest in any::<[u8; 15]>(),
        zeros_from in 1_usize..=16,
    ) {
        let mut bytes = [0; 16];
        bytes[0] = code;
        bytes[1..].copy_from_slice(&rest);
        bytes[zeros_from..].fill(0);
        match Event::decode(Encoded::from_bytes(bytes)) {
            Ok(event) => prop_assert_eq!(event.encode().to_bytes(), bytes),
            Err(error) => {
                prop_assert_eq!(error.kind_code(), code);
                prop_assert_eq!(error.is_unknown_kind(), Kind::from_code(code).is_none());
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}

#[test]
fn a_number_above_the_maximum_of_a_field_is_an_error() {
    let mut narrow_fields = 0;
    for kind in Kind::ALL {
        for (index, field) in kind.fields().iter().enumerate() {
            let full = u64::MAX >> (64 - field.bits);
            let mut numbers = vec![0; kind.fields().len()];
            numbers[index] = full;
            let decoded = Event::decode(compose(*kind, &numbers));
            assert_eq!(decoded.is_ok(), field.max == full, "{kind} {}", field.name);
            if let Err(error) = decoded {
                assert!(error.is_bad_field());
                narrow_fields += 1;
            }
        }
    }
    assert!(narrow_fields > 3, "the table has enums in its fields");
}

#[test]
fn a_bit_beyond_the_fields_is_an_error() {
    for kind in Kind::ALL {
        let used: u32 = 8 + kind.fields().iter().map(|field| field.bits).sum::<u32>();
        for bit in used..128 {
            let word = u128::from(kind.code()) | 1 << bit;
            let error = Event::decode(Encoded::from_bytes(word.to_le_bytes())).unwrap_err();
            assert!(error.is_bad_padding(), "{kind} bit {bit}");
        }
    }
}

#[test]
fn an_unknown_code_is_an_error_and_zero_is_one() {
    let known: BTreeSet<u8> = Kind::ALL.iter().map(|kind| kind.code()).collect();
    assert!(!known.contains(&0));
    for code in 0..=u8::MAX {
        let mut bytes = [0; 16];
        bytes[0] = code;
        let decoded = Event::decode(Encoded::from_bytes(bytes));
        assert_eq!(decoded.is_ok(), known.contains(&code), "code {code:#04x}");
        assert_eq!(Kind::from_code(code).is_some(), known.contains(&code));
    }
    let error = Event::decode(Encoded::from_bytes([0xee; 16])).unwrap_err();
    assert_eq!(error.to_string(), "no event has the code 0xee");
}

#[test]
fn names_are_unique_snake_case_and_codes_rise() {
    let names: BTreeSet<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(names.len(), Kind::ALL.len());
    for name in names {
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
    }
    assert!(Kind::ALL.is_sorted_by(|a, b| a.code() < b.code()));
    for kind in Kind::ALL {
        // The printed name is the variant's name in another case.
        let spelled: String =
            kind.name().split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect();
        assert_eq!(spelled, format!("{kind:?}"));
    }
}

/// Recordings depend on the binary form: these bytes must never change.
#[test]
fn the_layout_of_known_events_is_fixed() {
    let check = |event: Event, bytes: [u8; 16], text: &str| {
        assert_eq!(event.encode().to_bytes(), bytes, "{event}");
        assert_eq!(event.to_string(), text);
    };
    check(
        Event::TimersFired {
            shard: ShardId(0x0102),
            worker: WorkerId(3),
            timers: 0x0405_0607,
            late_ticks: 258,
        },
        [0x11, 2, 1, 3, 0, 7, 6, 5, 4, 2, 1, 0, 0, 0, 0, 0],
        "timers_fired shard=258 worker=3 timers=67438087 late_ticks=258",
    );
    check(
        Event::TaskPolled { task: TaskId(3), messages: 5, ran_ns: 0x1122_3344_5566_7788 },
        [0x22, 3, 0, 0, 0, 5, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0],
        "task_polled task=3 messages=5 ran_ns=1234605616436508552",
    );
    check(
        Event::SchedulerWarned { warning: SchedulerWarning::QuotaReached, value: 258 },
        [0x48, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        "scheduler_warned warning=quota_reached value=258",
    );
    check(
        Event::WorkStolen { thief: WorkerId(1), victim: WorkerId::OUTSIDE, n: 128 },
        [0x35, 1, 0, 0xff, 0xff, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        "work_stolen thief=1 victim=65535 n=128",
    );
    check(
        Event::ActorFailed { actor: ActorId::new(2, 9), directive: Directive::Escalate },
        [0x62, 9, 0, 0, 0, 2, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0],
        "actor_failed actor=2.9 directive=escalate",
    );
    let started = Record::new(1_000_000_007, Event::WorkerStarted { worker: WorkerId(1) });
    assert_eq!(started.to_string(), "1.000000007 worker_started worker=1");
}
